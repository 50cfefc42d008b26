terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "names" {
  type = list(string)
}
resource "cloud_record" "one" {
  for_each = toset(var.names)
  name     = each.value
  values   = ["1.1.1.1"]
}
