locals {
  buckets = {
    logs  = { days = 30, public = false }
    media = { days = 365, public = true }
  }
}

resource "terraform_data" "bucket" {
  for_each = local.buckets
  input = {
    name   = "bucket-${each.key}"
    days   = each.value.days
    public = each.value.public
  }
}

resource "random_pet" "user" {
  for_each = toset(["ann", "bob"])
  prefix   = each.value
}

resource "terraform_data" "policy" {
  for_each = terraform_data.bucket
  input    = "${each.key} of ${random_pet.user["ann"].id}"
}

resource "terraform_data" "all" {
  input = [for key in ["logs", "media"] : terraform_data.bucket[key].output.name]
}
