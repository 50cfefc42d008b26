terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "subnet" {}
resource "cloud_server" "this" {
  name   = "web"
  image  = "base"
  size   = "large"
  subnet = var.subnet
}
