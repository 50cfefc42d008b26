terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "user" {
  default = "ann"
}
variable "token_version" {
  default = 1
}

provider "cloud" {
  alias  = "inside"
  region = "south"
  token  = ephemeral.cloud_session.main.token
}

ephemeral "cloud_session" "main" {
  user = var.user
  lifecycle {
    precondition {
      condition     = var.user != ""
      error_message = "A user is needed."
    }
    postcondition {
      condition     = self.user == var.user
      error_message = "That is somebody else."
    }
  }
}

ephemeral "cloud_session" "each" {
  for_each = toset(["one", "two"])
  user     = "${each.key}-${ephemeral.cloud_session.main.user}"
}

# Opened when the network is there.
ephemeral "cloud_session" "late" {
  user = cloud_network.net.id
}

ephemeral "cloud_session" "never" {
  count = 0
  user  = "carl"
}

locals {
  token = "x-${ephemeral.cloud_session.main.token}"
}

module "server" {
  source        = "./server"
  token         = ephemeral.cloud_session.each["one"].token
  token_version = var.token_version
}

resource "cloud_network" "net" {
  name = "net"
  cidr = "10.0.0.0/16"
}

resource "cloud_server" "app" {
  name          = "app"
  image         = "base"
  token         = local.token
  token_version = var.token_version
}

resource "cloud_server" "late" {
  name          = "late"
  image         = "base"
  token         = ephemeral.cloud_session.late.token
  token_version = 1
}

resource "cloud_network" "inside" {
  provider   = cloud.inside
  name       = "inside"
  cidr       = "10.1.0.0/16"
  depends_on = [ephemeral.cloud_session.each]
}

output "version" {
  value = cloud_server.app.token_version
}
output "server" {
  value = module.server.id
}
