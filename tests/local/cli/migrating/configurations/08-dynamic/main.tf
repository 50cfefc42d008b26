terraform {
  required_providers {
    legacy = { source = "purlin/legacy" }
  }
}

variable "ports" {
  default = [{ key = "http", value = "web" }, { key = "https", value = "secure" }]
}

resource "random_pet" "name" {}

resource "legacy_thing" "dynamic" {
  name         = random_pet.name.id
  as_attribute = [{ key = "x", value = random_pet.name.id, port = 1 }]

  many {
    key  = "first"
    port = 1
  }

  dynamic "many" {
    for_each = var.ports
    content {
      key   = many.value.key
      value = "${many.value.value}-${random_pet.name.id}"
    }
  }

  dynamic "unordered" {
    for_each = { b = 2, a = 1 }
    iterator = rule
    content {
      key  = rule.key
      port = rule.value
    }
  }
}
