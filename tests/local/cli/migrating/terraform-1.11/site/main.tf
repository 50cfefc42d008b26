terraform {
  required_providers {
    random = { source = "hashicorp/random" }
    local  = { source = "hashicorp/local" }
  }
}

variable "domain" {}

variable "name" {}

resource "random_id" "this" {
  byte_length = 8
  prefix      = "${var.name}-"
}

resource "local_file" "page" {
  filename = "site/${var.domain}"
  content  = "${random_id.this.hex} of ${var.name}"
}

output "file" { value = local_file.page.filename }
