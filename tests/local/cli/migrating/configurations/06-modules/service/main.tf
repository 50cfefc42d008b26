variable "name" {}
variable "network" {}
variable "host" {}
variable "depends" {
  default = null
}

locals {
  full = "${var.name}.${var.network}"
}

resource "terraform_data" "this" {
  input = {
    name = local.full
    host = var.host
    next = var.depends
  }
}

resource "random_id" "token" {
  byte_length = 4
  keepers     = { host = terraform_data.this.output.host }
}

output "address" {
  value = "${var.host}/${random_id.token.hex}"
}
