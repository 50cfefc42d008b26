terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "token" {
  ephemeral = true
}
variable "token_version" {}

resource "cloud_server" "own" {
  name          = "own"
  image         = "base"
  token         = var.token
  token_version = var.token_version
}

output "id" {
  value = cloud_server.own.id
}
output "token" {
  value     = var.token
  ephemeral = true
}
