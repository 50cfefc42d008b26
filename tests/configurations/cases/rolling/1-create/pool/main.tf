terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "image" {}
variable "size" {}

resource "cloud_network" "pool" {
  name = "pool"
  cidr = var.image == "v1" ? "10.0.0.0/16" : "10.1.0.0/16"
}

resource "cloud_subnet" "pool" {
  network = cloud_network.pool.id
  cidr    = cidrsubnet(cloud_network.pool.cidr, 8, 1)
}

resource "cloud_server" "pool" {
  count  = 2
  name   = "pool-${count.index}"
  image  = var.image
  size   = var.size
  subnet = cloud_subnet.pool.id
  lifecycle {
    create_before_destroy = true
  }
}

output "addresses" {
  value = toset(cloud_server.pool[*].address)
}
