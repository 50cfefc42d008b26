terraform {
  required_providers {
    cloud = {
      source                = "example.com/purlin/cloud"
      configuration_aliases = [cloud.replica]
    }
  }
}

variable "name" {
  type = string
}
variable "machines" {
  type     = number
  nullable = false
  validation {
    condition     = var.machines < 10
    error_message = "Ten machines are too many for ${var.name}."
  }
}

resource "cloud_network" "stage" {
  name = var.name
  cidr = "10.0.0.0/16"
}

module "group" {
  source  = "../group"
  count   = var.machines > 0 ? 2 : 0
  name    = "${var.name}-${count.index}"
  size    = var.machines
  network = cloud_network.stage.id
}

module "replica" {
  source  = "../group"
  name    = "${var.name}-replica"
  size    = 1
  network = cloud_network.stage.id
  providers = {
    cloud = cloud.replica
  }
  depends_on = [module.group]
}

output "addresses" {
  value = concat(module.group[*].addresses, [module.replica.addresses])
}
output "regions" {
  value = distinct(concat(flatten(module.group[*].regions), module.replica.regions))
}
