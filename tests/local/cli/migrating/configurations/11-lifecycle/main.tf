variable "mode" {
  default = "steady"
}

resource "terraform_data" "release" {
  input = "v1"
}

resource "terraform_data" "app" {
  input            = { version = terraform_data.release.output, owner = "ann" }
  triggers_replace = ["fixed"]

  lifecycle {
    create_before_destroy = true
    prevent_destroy       = true
    ignore_changes        = [input]
    replace_triggered_by  = [terraform_data.release.id, terraform_data.release]
    precondition {
      condition     = var.mode != "chaos"
      error_message = "The mode ${var.mode} is not allowed."
    }
    postcondition {
      condition     = self.id != ""
      error_message = "It has no id."
    }
  }
}

resource "terraform_data" "user" {
  input = terraform_data.app.id
}
