terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "password" {
  type      = string
  sensitive = true
}
variable "token" {
  type      = string
  ephemeral = true
  default   = "t0ken"
}
variable "token_version" {
  default = 1
}
variable "users" {
  type = map(object({
    name = string
    key  = string
  }))
}

locals {
  keys = { for id, user in var.users : id => { public = user.name, secret = sensitive(user.key) } }
  url  = "sql://admin:${var.password}@${cloud_database.main.name}"
}

resource "cloud_database" "main" {
  name     = "main"
  password = var.password
  settings = {
    url   = "sql://${var.password}"
    level = 2
    list  = ["open", sensitive("closed")]
  }
}

resource "cloud_server" "app" {
  name          = "app"
  image         = "base"
  password      = "plain"
  token         = var.token
  token_version = var.token_version
  keys          = local.keys
  user_data     = local.url
  tags = {
    length = nonsensitive(length(var.password))
    secret = var.password
    open   = "open"
  }
}

resource "cloud_record" "app" {
  name   = "app"
  values = [cloud_server.app.address]
  ttl    = length(var.password)
}

resource "terraform_data" "mixed" {
  input = { console = cloud_server.app.console, name = cloud_server.app.name, password = var.password }
}

output "url" {
  value     = local.url
  sensitive = true
}
output "open" {
  value = cloud_server.app.tags.open
}
output "console" {
  value     = cloud_server.app.console
  sensitive = true
}
output "settings" {
  value     = cloud_database.main.settings
  sensitive = true
}
output "is_sensitive" {
  value = [issensitive(local.url), issensitive(cloud_server.app.name), issensitive(terraform_data.mixed.output.name)]
}
