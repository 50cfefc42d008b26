resource "random_pet" "one" {}

resource "random_integer" "number" {
  min = 1
  max = 100
  keepers = {
    pet = random_pet.one.id
  }
}

resource "random_shuffle" "order" {
  input        = ["a", "b", random_pet.one.id]
  result_count = 2
}

resource "random_uuid" "id" {}

resource "random_string" "text" {
  length  = 8
  upper   = false
  special = true
}

resource "terraform_data" "result" {
  input = "${random_integer.number.result}/${random_shuffle.order.result[0]}/${random_uuid.id.result}/${random_string.text.id}"
}
