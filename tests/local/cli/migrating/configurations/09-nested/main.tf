terraform {
  required_providers {
    legacy = { source = "purlin/legacy" }
  }
}

resource "legacy_nested" "plain" {
  metadata {
    name = "plain"
  }
}

resource "legacy_nested" "prefixed" {
  metadata {
    prefix = "web-"
    labels = { app = "web" }
  }
  port {
    number = 80
  }
  port {
    number   = 443
    node     = 30443
    protocol = "UDP"
  }
  wait = false
}

resource "legacy_nested" "secret" {
  metadata {
    name = legacy_nested.plain.metadata[0].name
  }
  restart           = "never"
  secret_wo         = "open-sesame"
  secret_wo_version = 1
}
