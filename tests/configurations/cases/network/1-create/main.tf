terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "cidr" {
  type = string
}

variable "zones" {
  type = map(object({
    index  = number
    public = optional(bool)
    labels = optional(map(string), {})
    ports  = optional(list(number), [443])
  }))
}

locals {
  labels = { team = "net", cidr = var.cidr }
  # The public zones have another half of the network.
  subnets = {
    for zone, one in var.zones : zone => {
      cidr   = cidrsubnet(var.cidr, 8, one.index + (coalesce(one.public, false) ? 128 : 0))
      labels = merge(local.labels, { zone = zone }, one.labels)
    }
  }
  openings = merge([
    for zone, one in var.zones : { for port in one.ports : "${zone}-${port}" => { zone = zone, port = port } }
  ]...)
}

resource "cloud_network" "main" {
  name   = "main"
  cidr   = var.cidr
  labels = local.labels
}

resource "cloud_subnet" "zone" {
  for_each  = local.subnets
  network   = cloud_network.main.id
  cidr      = each.value.cidr
  zone      = each.key
  is_public = var.zones[each.key].public
  labels    = each.value.labels
}

resource "cloud_firewall" "opening" {
  for_each = local.openings
  name     = each.key
  network  = cloud_network.main.id
  rule {
    port    = each.value.port
    sources = [cloud_subnet.zone[each.value.zone].cidr, "10.9.0.0/16"]
  }
}

output "subnets" {
  value = { for zone, one in cloud_subnet.zone : zone => { id = one.id, cidr = one.cidr } }
}

output "hosts" {
  value = [for one in values(local.subnets) : cidrhost(one.cidr, -2)]
}

output "first_address" {
  value = try(cloud_subnet.zone["a"].addresses[0], "none")
}
