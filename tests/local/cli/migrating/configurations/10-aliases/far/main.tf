terraform {
  required_providers {
    corner = { source = "purlin/corner" }
  }
}

variable "name" {}

resource "corner_thing" "far" {
  name = "far ${var.name}"
  tags = { from = var.name }
}
