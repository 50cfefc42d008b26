terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "name" {}
variable "size" {
  default = 1
}
variable "network" {}

resource "cloud_subnet" "own" {
  network = var.network
  cidr    = cidrsubnet("10.0.0.0/16", 8, length(var.name))
  labels  = { name = var.name }
}

resource "cloud_server" "machine" {
  count  = var.size
  name   = format("%s-%02d", var.name, count.index)
  image  = "base"
  subnet = cloud_subnet.own.id
}

output "addresses" {
  value = cloud_server.machine[*].address
}
output "regions" {
  value = distinct(cloud_server.machine[*].region)
}
