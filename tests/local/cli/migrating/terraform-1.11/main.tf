terraform {
  required_providers {
    random = { source = "hashicorp/random", version = ">= 3.0" }
    local  = { source = "hashicorp/local" }
    time   = { source = "hashicorp/time" }
    corner = { source = "purlin/corner" }
  }
}

provider "corner" {
  alias  = "east"
  secret = "of-the-settings"
}

variable "password" {
  sensitive = true
  default   = "of-the-database"
}

variable "domains" {
  default = { blue = "blue.example.com", green = "green.example.com" }
}

locals {
  prefix = "web"
  both   = "${local.prefix}-${random_pet.name.id}"
}

resource "random_pet" "name" {
  length = 2
  prefix = local.prefix
  lifecycle { create_before_destroy = true }
}

resource "random_password" "db" {
  length = 16
}

resource "random_id" "node" {
  count       = 2
  byte_length = 4
  keepers     = { name = random_pet.name.id, index = tostring(count.index) }
}

resource "random_integer" "port" {
  for_each = { small = 9, big = 9000000 }
  min      = 1
  max      = each.value
}

resource "random_shuffle" "order" {
  input = ["a", "b", "c"]
}

resource "random_pet" "odd" {
  count = 2
}

module "site" {
  source   = "./site"
  for_each = var.domains
  domain   = each.value
  name     = random_pet.name.id
}

resource "time_static" "start" {
  triggers = { generation = "1" }
}

resource "time_offset" "later" {
  base_rfc3339 = time_static.start.rfc3339
  offset_days  = 7
}

resource "local_file" "index" {
  filename        = "site/index.txt"
  content         = join("\n", concat([for one in module.site : one.file], random_id.node[*].hex, [local.both]))
  file_permission = "0644"
  depends_on      = [time_static.start]
}

resource "local_sensitive_file" "login" {
  filename = "site/login"
  content  = random_password.db.result
}

data "local_file" "index" {
  filename = local_file.index.filename
}

resource "local_file" "copy" {
  filename = "site/copy.txt"
  content  = data.local_file.index.content_sha256
}

resource "terraform_data" "release" {
  input            = { name = random_pet.name.id, list = [1, 2.5, true, null], password = var.password }
  triggers_replace = [random_id.node[0].id]
}

resource "corner_thing" "all" {
  provider          = corner.east
  name              = "all"
  text              = random_pet.name.id
  password          = random_password.db.result
  amount            = 123456789012345678901234567890.125
  tags              = { env = "prod", secret = var.password }
  names             = ["b", "a"]
  any               = { deep = [1, "two", { three = true, secret = var.password }] }
  one               = { key = var.password }
  many              = [{ key = "a" }, { key = var.password, value = "v" }]
  by_key            = { x = { key = "k" } }
  unordered         = [{ key = "u" }]
  secret_wo         = "written only"
  secret_wo_version = 3
  rule { key = "r1" }
  rule { key = random_id.node[1].hex }
}

resource "corner_identified" "place" {
  region = "north"
  name   = "n"
}

resource "corner_counted" "counted" {
  text = random_id.node[0].hex
}

resource "corner_trouble" "stuck" {
  text      = "s"
  on_delete = "error"
  lifecycle { create_before_destroy = true }
}

output "url" {
  value = "https://${random_pet.name.id}"
}
