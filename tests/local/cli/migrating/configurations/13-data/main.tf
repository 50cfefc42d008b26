resource "local_file" "motd" {
  filename = "site/motd"
  content  = "welcome"
}

data "local_file" "motd" {
  filename = local_file.motd.filename
}

resource "terraform_data" "banner" {
  input = "${data.local_file.motd.content}!"
}
