terraform {
  required_providers {
    legacy = { source = "purlin/legacy" }
  }
}

variable "name" {
  default = "MixedCase"
}

resource "legacy_thing" "normalized" {
  name     = "n-${var.name}"

  as_attribute {
    key = "x"
  }

  casing   = var.name
  document = jsonencode({ Version = "1", Name = var.name })
  size     = 1.25
  enabled  = false
  text     = ""
  tags     = { Name = var.name }
  one {
    key = lower(var.name)
  }
  timeouts {
    create = "5m"
  }
}
