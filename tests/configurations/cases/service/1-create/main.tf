terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "rules" {
  type = list(object({
    port    = number
    sources = optional(set(string))
  }))
}
variable "log" {
  type    = string
  default = null
}
variable "interfaces" {
  type    = map(list(object({ to = string, metric = optional(number, 1) })))
  default = {}
}
variable "disks" {
  type    = list(number)
  default = [10]
}

resource "cloud_network" "front" {
  name = "front"
  cidr = "10.0.0.0/24"
}

resource "cloud_firewall" "front" {
  name    = "front"
  network = cloud_network.front.id
  dynamic "rule" {
    for_each = var.rules
    iterator = opened
    content {
      port     = opened.value.port
      protocol = opened.value.port == 53 ? "udp" : null
      sources  = opened.value.sources
    }
  }
  dynamic "log" {
    for_each = var.log[*]
    content {
      level = log.value
    }
  }
}

resource "cloud_server" "front" {
  name  = "front"
  image = "base"
  disks = [for index, size in var.disks : { gigabytes = size, kind = index == 0 ? null : "hdd" }]
  keys = {
    admin  = { public = "k1" }
    deploy = { public = "k2", secret = "s2" }
  }
  options = {
    arguments = [for rule in var.rules : "--port=${rule.port}"]
    is_spot   = length(var.rules) > 2
  }
  dynamic "interface" {
    for_each = var.interfaces
    content {
      subnet = interface.key
      dynamic "route" {
        for_each = { for route in interface.value : route.to => route.metric }
        content {
          to     = route.key
          metric = route.value
        }
      }
    }
  }
  dynamic "volume" {
    for_each = { root = 10, data = 20 }
    labels   = [volume.key]
    content {
      gigabytes = volume.value * length(var.disks)
    }
  }
  health {
    path = "/${cloud_firewall.front.revision}"
  }
}

output "devices" {
  value = cloud_server.front.disks[*].device
}
output "routes" {
  value = flatten(cloud_server.front.interface[*].route[*].to)
}
output "levels" {
  value = one(cloud_firewall.front.log[*].level)
}
