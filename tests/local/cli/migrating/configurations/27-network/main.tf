variable "cidr" {
  default = "10.1.0.0/16"
}

variable "zones" {
  type    = list(string)
  default = ["a", "b", "c"]
}

locals {
  tags    = { Project = "shop", ManagedBy = "terraform" }
  subnets = { for index, zone in var.zones : "private-${zone}" => { zone = zone, cidr = cidrsubnet(var.cidr, 8, index) } }
}

resource "terraform_data" "vpc" {
  input = { cidr = var.cidr, tags = merge(local.tags, { Name = "main" }) }
}

resource "terraform_data" "subnet" {
  for_each = local.subnets
  input = {
    vpc  = terraform_data.vpc.id
    zone = each.value.zone
    cidr = each.value.cidr
    tags = merge(local.tags, { Name = each.key })
  }
}

resource "terraform_data" "route" {
  for_each = toset(var.zones)
  input    = { zone = each.key, subnet = terraform_data.subnet["private-${each.key}"].id }
}

module "cluster" {
  source  = "./cluster"
  vpc     = terraform_data.vpc.id
  subnets = [for subnet in terraform_data.subnet : subnet.id]
  pools = {
    small = { size = 1, labels = { tier = "web" } }
    large = { size = 3, labels = { tier = "db" } }
  }
}

output "cluster" {
  value = module.cluster.name
}
