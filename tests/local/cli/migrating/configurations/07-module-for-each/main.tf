locals {
  stages = {
    test = { size = 1, zones = ["a"] }
    live = { size = 3, zones = ["a", "b"] }
  }
}

module "stage" {
  source   = "./stage"
  for_each = local.stages
  name     = each.key
  size     = each.value.size
  zones    = each.value.zones
}

resource "terraform_data" "overview" {
  input = { for name, stage in module.stage : name => stage.names }
}

resource "terraform_data" "live" {
  input = module.stage["live"].names[0]
}
