terraform {
  required_providers {
    corner = { source = "purlin/corner", version = ">= 1.0" }
  }
}

variable "token" {
  type      = string
  sensitive = true
}

variable "place" {
  default = "the east"
}

provider "corner" {}

provider "corner" {
  alias  = "east"
  warn   = "this is ${var.place}"
  secret = var.token
}

resource "corner_thing" "west" {
  name = "west"
}

resource "corner_thing" "east" {
  provider = corner.east
  name     = "east of ${corner_thing.west.name}"
  password = var.token
}

module "far" {
  source    = "./far"
  providers = { corner = corner.east }
  name      = corner_thing.east.name
}
