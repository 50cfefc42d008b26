variable "region" {
  type    = string
  default = "eu"
}

variable "size" {
  type = number
}

variable "loud" {
  type    = bool
  default = false
}

variable "tags" {
  type    = map(string)
  default = { Team = "web" }
}

resource "terraform_data" "settings" {
  input = {
    name  = "${var.region}-${var.size}"
    title = var.loud ? upper(var.region) : var.region
    size  = var.size * 2
    tags  = merge(var.tags, { Region = var.region })
  }
}
