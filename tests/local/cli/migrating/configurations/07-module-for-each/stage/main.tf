variable "name" {
  type = string
}

variable "size" {
  type = number
}

variable "zones" {
  type = list(string)
}

module "node" {
  source = "../node"
  count  = var.size
  name   = "${var.name}-${count.index}"
}

resource "terraform_data" "zone" {
  for_each = toset(var.zones)
  input    = "${var.name}/${each.value}/${module.node[0].id}"
}

output "names" {
  value = module.node[*].id
}
