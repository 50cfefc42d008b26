variable "monitoring" {
  type    = bool
  default = true
}

module "monitoring" {
  source = "./monitoring"
  count  = var.monitoring ? 1 : 0
  name   = "watch"
}

module "backup" {
  source = "./monitoring"
  count  = var.monitoring ? 0 : 1
  name   = "backup"
}

resource "terraform_data" "dashboard" {
  input = {
    monitor = one(module.monitoring[*].id)
    backups = length(module.backup)
  }
}
