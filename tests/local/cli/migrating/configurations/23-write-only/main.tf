terraform {
  required_providers {
    corner = { source = "purlin/corner" }
  }
}

variable "password" {
  type      = string
  sensitive = true
  default   = "from a variable"
}

resource "corner_thing" "constant" {
  name              = "constant"
  secret_wo         = "open-sesame"
  secret_wo_version = 2
}

resource "corner_thing" "variable" {
  name              = "variable"
  secret_wo         = var.password
  secret_wo_version = 1
}
