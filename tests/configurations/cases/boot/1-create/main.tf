terraform {
  required_providers {
    cloud = { source = "example.com/purlin/cloud" }
  }
}

variable "peers" {
  type = map(string)
}
variable "motd" {
  type    = string
  default = "hello"
}

locals {
  settings = {
    motd  = var.motd
    peers = [for name in sort(keys(var.peers)) : { name = name, address = var.peers[name] }]
    flags = { trace = false, level = 3, ratio = 0.25, none = null }
  }
}

resource "cloud_server" "boot" {
  name  = "boot"
  image = "base"
  user_data = templatefile("${path.module}/boot.tftpl", {
    peers = var.peers
    motd  = var.motd
    names = jsonencode(keys(var.peers))
  })
  tags = {
    checksum = sha256(yamlencode(local.settings))
    encoded  = base64encode(jsonencode(local.settings))
    banner   = trimspace(file("${path.module}/banner.txt"))
    replaced = replace(var.motd, "/[aeiou]/", "_")
    heredoc  = <<-EOT
      motd: ${var.motd}
        %{~for name, address in var.peers}
      ${name} is %{if startswith(address, "10.")}inside%{else}outside%{endif}
        %{~endfor}
    EOT
  }
}

resource "cloud_database" "settings" {
  name     = "settings"
  password = "initial"
  settings = local.settings
}

output "user_data" {
  value = cloud_server.boot.user_data
}
output "decoded" {
  value = yamldecode(yamlencode(local.settings)).peers[*].name
}
