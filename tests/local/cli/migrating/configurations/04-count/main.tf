variable "workers" {
  type    = number
  default = 3
}

resource "random_pet" "worker" {
  count  = var.workers
  prefix = "worker-${count.index}"
}

resource "terraform_data" "names" {
  input = random_pet.worker[*].id
}

resource "terraform_data" "first" {
  input = random_pet.worker[0].id
}

resource "terraform_data" "pair" {
  count = length(random_pet.worker)
  input = { number = count.index, pet = random_pet.worker[count.index].id }
}

resource "terraform_data" "none" {
  count = var.workers > 10 ? 1 : 0
  input = "many"
}

resource "terraform_data" "has_none" {
  input = length(terraform_data.none) == 0 ? "few" : one(terraform_data.none[*].output)
}
