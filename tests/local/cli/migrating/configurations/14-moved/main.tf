resource "random_pet" "new" {
  length = 1
}

resource "terraform_data" "all" {
  for_each = toset(["a", "b"])
  input    = "${each.key}-${random_pet.new.id}"
}

module "inner" {
  source = "./inner"
  name   = random_pet.new.id
}

moved {
  from = random_pet.old
  to   = random_pet.new
}

moved {
  from = terraform_data.each
  to   = terraform_data.all
}

moved {
  from = module.outer
  to   = module.inner
}
