terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "records" {
  type    = map(string)
  default = { www1 = "r1", www2 = "r2" }
}
variable "ttl" {
  type    = number
  default = null
}
provider "cloud" {
  region = "near"
}
import {
  to = cloud_network.found
  id = "found"
}
resource "cloud_network" "found" {
  name   = "found"
  cidr   = "10.0.0.0/8"
  labels = { by = "configuration" }
}
import {
  for_each = var.records
  to       = cloud_record.all[each.key]
  id       = each.value
}
resource "cloud_record" "all" {
  for_each = var.records
  name     = each.key
  values   = ["1.1.1.${substr(each.key, 3, 1)}"]
  ttl      = var.ttl
}
resource "cloud_subnet" "inside" {
  network = cloud_network.found.id
  cidr    = cidrsubnet(cloud_network.found.cidr, 16, 1)
}
output "names" {
  value = [for record in cloud_record.all : record.name]
}
output "version" {
  value = cloud_network.found.version
}
