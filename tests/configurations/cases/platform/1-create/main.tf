terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "stages" {
  type    = set(string)
  default = ["test", "live"]
}
variable "machines" {
  type    = number
  default = 2
}

provider "cloud" {
  region = "near"
  owner  = "platform"
}

provider "cloud" {
  alias  = "far"
  region = "far"
}

module "stage" {
  source   = "./stage"
  for_each = var.stages
  name     = each.key
  machines = var.machines
  providers = {
    cloud         = cloud
    cloud.replica = cloud.far
  }
}

resource "cloud_record" "all" {
  name   = "all"
  values = flatten([for stage in module.stage : stage.addresses])
}

output "regions" {
  value = { for name, stage in module.stage : name => stage.regions }
}
output "counts" {
  value = [for name, stage in module.stage : "${name}: ${length(stage.addresses)}"]
}
