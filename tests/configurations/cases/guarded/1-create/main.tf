terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "size" {
  type    = string
  default = "small"
  validation {
    condition     = contains(["small", "large", "huge"], var.size)
    error_message = "There is no size ${var.size}."
  }
}
variable "replicas" {
  type    = number
  default = 1
  validation {
    condition     = var.size != "small" || var.replicas == 1
    error_message = "A small one has no replicas."
  }
}

resource "cloud_database" "main" {
  name     = "main"
  password = "p"
  replicas = var.replicas
  lifecycle {
    precondition {
      condition     = var.size != "huge"
      error_message = "Huge ones are sold out."
    }
    postcondition {
      condition     = self.replicas < 4
      error_message = "${self.replicas} replicas are too many."
    }
  }
}

data "cloud_image" "main" {
  family = var.size
  lifecycle {
    postcondition {
      condition     = self.size >= 0
      error_message = "It is empty."
    }
  }
}

check "replicas" {
  data "cloud_image" "checked" {
    family = "check"
  }
  assert {
    condition     = cloud_database.main.replicas > 1
    error_message = "One replica is not enough."
  }
  assert {
    condition     = data.cloud_image.checked.family == "check"
    error_message = "Another image."
  }
}

output "replicas" {
  value = cloud_database.main.replicas
  precondition {
    condition     = cloud_database.main.replicas != 3
    error_message = "Three is a bad number."
  }
}
output "image" {
  value = data.cloud_image.main.id
}
