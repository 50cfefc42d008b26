variable "domain" {
  default = "example.com"
}

resource "random_pet" "network" {}

module "web" {
  source  = "./service"
  name    = "web"
  network = random_pet.network.id
  host    = "web.${var.domain}"
}

module "api" {
  source  = "./service"
  name    = "api"
  network = random_pet.network.id
  host    = "api.${var.domain}"
  depends = module.web.address
}

output "addresses" {
  value = [module.web.address, module.api.address]
}
