terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

resource "cloud_network" "old" {
  name = "shared"
  cidr = "10.3.0.0/16"
}
resource "cloud_subnet" "part" {
  count   = 3
  network = cloud_network.old.id
  cidr    = cidrsubnet("10.3.0.0/16", 8, count.index)
}
resource "cloud_server" "web" {
  name   = "web"
  image  = "base"
  subnet = cloud_subnet.part[0].id
}
resource "cloud_server" "kept" {
  name  = "kept"
  image = "base"
}
resource "cloud_server" "given_up" {
  name  = "given up"
  image = "base"
}
module "records" {
  source = "./records"
  names  = ["a", "b"]
}
