terraform {
  required_providers {
    corner = { source = "purlin/corner" }
  }
}

resource "random_pet" "name" {}

resource "corner_thing" "kinds" {
  name     = random_pet.name.id
  amount   = 1.5
  count_of = 4
  tags     = { Owner = "ann", "with.dot" = random_pet.name.id }
  names    = ["b", "a", random_pet.name.id]
  any      = { list = [1, "two"], flag = true }
  one = {
    key   = "one-${random_pet.name.id}"
    value = "x"
  }
  many = [
    { key = "first" },
    { key = "second", value = random_pet.name.id },
  ]
  unordered = [{ key = "z", value = "1" }, { key = "a" }]
  by_key = {
    blue  = { key = "b", value = random_pet.name.id }
    green = { key = "g" }
  }
  rule {
    key = "r1"
  }
  rule {
    key   = "r2"
    value = random_pet.name.id
  }
}
