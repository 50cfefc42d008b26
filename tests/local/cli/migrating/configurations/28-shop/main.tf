terraform {
  required_providers {
    corner = { source = "purlin/corner" }
    legacy = { source = "purlin/legacy" }
  }
}

variable "environment" {
  type    = string
  default = "live"
}

variable "services" {
  default = {
    cart   = { replicas = 2, port = 8080, public = true }
    search = { replicas = 1, port = 9200, public = false }
  }
}

locals {
  is_live = var.environment == "live"
  public  = { for name, service in var.services : name => service if service.public }
}

provider "corner" {
  alias = "dns"
  warn  = "zone of ${var.environment}"
}

resource "random_password" "database" {
  length  = 24
  special = false
}

resource "corner_thing" "database" {
  name     = "db-${var.environment}"
  text     = "postgres"
  password = random_password.database.result
  count_of = local.is_live ? 3 : 1
}

module "service" {
  source   = "./service"
  for_each = var.services
  name     = each.key
  replicas = local.is_live ? each.value.replicas : 1
  port     = each.value.port
  database = corner_thing.database.id
}

resource "corner_thing" "record" {
  for_each = local.public
  provider = corner.dns
  name     = "${each.key}.${var.environment}.example.com"
  text     = module.service[each.key].endpoint
}

resource "terraform_data" "summary" {
  input = {
    endpoints = { for name, service in module.service : name => service.endpoint }
    records   = [for record in corner_thing.record : record.name]
  }
}
