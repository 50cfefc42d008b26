terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

resource "cloud_network" "new" {
  name = "shared"
  cidr = "10.3.0.0/16"
}
locals {
  parts = { first = 0, second = 1 }
}
resource "cloud_subnet" "part" {
  for_each = local.parts
  network  = cloud_network.new.id
  cidr     = cidrsubnet("10.3.0.0/16", 8, each.value)
}
module "web" {
  source = "./web"
  count  = 1
  subnet = cloud_subnet.part["first"].id
}
module "names" {
  source   = "./records"
  for_each = { main = ["a", "c"] }
  names    = each.value
}
moved {
  from = cloud_network.old
  to   = cloud_network.new
}
moved {
  from = cloud_subnet.part[0]
  to   = cloud_subnet.part["first"]
}
moved {
  from = cloud_subnet.part[1]
  to   = cloud_subnet.part["second"]
}
moved {
  from = cloud_server.web
  to   = module.web[0].cloud_server.this
}
moved {
  from = module.records
  to   = module.names["main"]
}
removed {
  from = cloud_server.kept
  lifecycle {
    destroy = false
  }
}
removed {
  from = cloud_server.given_up
  lifecycle {
    destroy = true
  }
}
