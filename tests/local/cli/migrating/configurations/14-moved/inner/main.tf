variable "name" {}

resource "terraform_data" "this" {
  input = var.name
}
