variable "vpc" {
  type = string
}

variable "subnets" {
  type = list(string)
}

variable "pools" {
  type = map(object({ size = number, labels = map(string) }))
}

resource "random_pet" "name" {
  prefix  = "cluster"
  keepers = { vpc = var.vpc }
}

resource "terraform_data" "pool" {
  for_each = var.pools
  input = {
    cluster = random_pet.name.id
    size    = each.value.size
    labels  = merge(each.value.labels, { pool = each.key })
    subnets = var.subnets
  }
}

output "name" {
  value = random_pet.name.id
}
