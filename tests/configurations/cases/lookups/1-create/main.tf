terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "family" {
  default = "stable"
}
variable "team" {
  default = "one"
}
variable "is_known" {
  default = false
}

data "cloud_image" "base" {
  family = var.family
}

data "cloud_image" "each" {
  for_each = toset(["arm", "amd"])
  family   = "${var.family}-${each.key}"
  labels   = { base = data.cloud_image.base.id }
}

resource "cloud_network" "own" {
  name   = "own"
  cidr   = "10.0.0.0/16"
  labels = { team = var.team }
}

data "cloud_network" "found" {
  id = cloud_network.own.id
}

data "cloud_image" "late" {
  family     = "late"
  depends_on = [cloud_network.own]
}

resource "cloud_server" "known" {
  for_each = data.cloud_image.each
  name     = each.key
  image    = each.value.id
}

resource "cloud_server" "found" {
  name  = data.cloud_network.found.name
  image = data.cloud_image.late.id
  tags  = data.cloud_network.found.labels
}

output "sizes" {
  value = { for name, image in data.cloud_image.each : name => image.size }
}
output "version" {
  value = data.cloud_network.found.version
}
output "late" {
  value = data.cloud_image.late.mirrors
}
