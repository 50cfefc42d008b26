resource "random_pet" "network" {}

resource "random_pet" "disk" {
  prefix = random_pet.network.id
}

resource "random_pet" "server" {
  prefix = random_pet.disk.id
  lifecycle {
    create_before_destroy = true
  }
}
