resource "random_pet" "data" {}

resource "random_id" "data" {
  byte_length = 2
  prefix      = random_pet.data.id
}

resource "random_pet" "in" {
  prefix = random_pet.data.id
}

resource "terraform_data" "Some_Name" {
  input = [random_pet.data.id, random_id.data.hex, random_pet.in.id]
}

resource "terraform_data" "it" {
  input = terraform_data.Some_Name.output[*]
}
