terraform {
  required_providers {
    legacy = { source = "purlin/legacy" }
  }
}

variable "name" {
  type = string
}

variable "replicas" {
  type = number
}

variable "port" {
  type = number
}

variable "database" {
  type = string
}

resource "legacy_nested" "deployment" {
  metadata {
    name   = var.name
    labels = { app = var.name, replicas = tostring(var.replicas) }
  }
  port {
    number = var.port
  }
  text = "connects to ${var.database}"
}

resource "random_id" "session" {
  count       = var.replicas
  byte_length = 4
  keepers     = { deployment = legacy_nested.deployment.id }
}

output "endpoint" {
  value = "${legacy_nested.deployment.metadata[0].name}:${var.port}/${join(",", random_id.session[*].hex)}"
}
