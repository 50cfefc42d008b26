locals {
  prefix = "shop"
  zones  = ["a", "b"]
  labels = {
    app  = local.prefix
    pet  = random_pet.owner.id
    zone = local.zones[1]
  }
  names = [for zone in local.zones : "${local.prefix}-${zone}"]
}

resource "random_pet" "owner" {}

resource "terraform_data" "labels" {
  input            = local.labels
  triggers_replace = local.names
}

resource "terraform_data" "first" {
  input = local.names[0]
}
