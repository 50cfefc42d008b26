terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "region" {
  default = "east"
}
variable "has_database" {
  type    = bool
  default = true
}
variable "tenants" {
  type = list(object({
    name  = string
    size  = optional(string)
    owner = optional(object({ name = optional(string, "nobody"), mail = optional(string) }), {})
  }))
}

provider "cloud" {
  region = var.region
}
provider "cloud" {
  alias  = "owned"
  region = upper(var.region)
  owner  = cloud_network.root.name
}

locals {
  by_name = { for tenant in var.tenants : tenant.name => tenant }
  by_size = { for tenant in var.tenants : coalesce(tenant.size, "default") => tenant.name... }
  pairs   = setproduct(keys(local.by_name), ["blue", "green"])
}

resource "cloud_network" "root" {
  name = "root"
  cidr = "10.0.0.0/8"
}

resource "cloud_network" "owned" {
  provider = cloud.owned
  for_each = local.by_name
  name     = each.key
  cidr     = cidrsubnets(cloud_network.root.cidr, 8, 8, 4)[index(keys(local.by_name), each.key)]
  labels   = { for key, value in each.value.owner : key => value if value != null }
}

resource "cloud_server" "pair" {
  count = length(local.pairs)
  name  = join("-", local.pairs[count.index])
  image = "base"
  size  = local.by_name[local.pairs[count.index][0]].size
}

resource "cloud_database" "optional" {
  name     = "optional"
  password = "p"
  lifecycle {
    enabled = var.has_database
  }
}

resource "cloud_record" "counted" {
  count  = var.has_database ? 1 : 0
  name   = "database"
  values = values(cloud_database.optional.endpoints)
}

output "sizes" {
  value = local.by_size
}
output "record" {
  value = one(cloud_record.counted[*].id)
}
output "database" {
  value = try(cloud_database.optional.id, null)
}
output "owners" {
  value = distinct(values(cloud_network.owned)[*].owner)
}
output "servers" {
  value = { for server in cloud_server.pair : server.name => server.size }
}
output "zipped" {
  value = zipmap(cloud_server.pair[*].name, [for server in cloud_server.pair : startswith(server.id, "server-")])
}
