resource "random_pet" "name" {}

resource "terraform_data" "server" {
  input = random_pet.name.id

  provisioner "local-exec" {
    command = "echo created ${self.output} >> log.txt"
  }

  provisioner "local-exec" {
    when       = destroy
    on_failure = continue
    command    = "echo destroyed ${self.output} >> log.txt"
    environment = {
      STAGE = "test"
    }
  }
}
