terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "image" {
  default = "v1"
}
variable "trigger" {
  default = "a"
}
variable "size" {
  default = "small"
}

module "pool" {
  source = "./pool"
  image  = var.image
  size   = var.size
}

resource "cloud_record" "pool" {
  name   = "pool"
  values = module.pool.addresses
  ttl    = 60
  lifecycle {
    ignore_changes = [ttl]
  }
}

resource "terraform_data" "trigger" {
  input = var.trigger
}

resource "cloud_server" "follower" {
  name  = "follower"
  image = "fixed"
  tags  = { size = var.size }
  lifecycle {
    replace_triggered_by = [terraform_data.trigger.output]
    ignore_changes       = [tags["size"]]
  }
}

output "addresses" {
  value = module.pool.addresses
}
