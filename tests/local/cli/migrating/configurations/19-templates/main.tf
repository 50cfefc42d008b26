locals {
  hosts = ["a", "b"]
  debug = false
}

resource "random_pet" "owner" {}

resource "terraform_data" "script" {
  input = <<-EOT
    #!/bin/sh
    # for ${random_pet.owner.id}
    %{for host in local.hosts~}
    ping ${host}
    %{endfor~}
    %{if local.debug}set -x%{else}set -e%{endif}
    echo "$${HOME} costs 100%%{x}"
  EOT
}

resource "terraform_data" "file" {
  input = templatefile("${path.module}/server.conf.tftpl", { name = random_pet.owner.id, ports = [80, 443] })
}

resource "terraform_data" "static" {
  input = file("${path.module}/motd.txt")
}
