resource "random_pet" "name" {
  length    = 2
  separator = "_"
}

resource "random_id" "suffix" {
  byte_length = 4
  prefix      = "${random_pet.name.id}-"
  keepers     = { pet = random_pet.name.id }
}

output "name" {
  value = "${random_pet.name.id}-${random_id.suffix.hex}"
}
