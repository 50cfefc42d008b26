resource "random_password" "admin" {
  length  = 20
  special = false
}

resource "local_sensitive_file" "login" {
  filename = "site/login"
  content  = "admin:${random_password.admin.result}"
}

resource "terraform_data" "hashed" {
  input = { user = "admin", password = random_password.admin.result }
}

output "password" {
  value     = random_password.admin.result
  sensitive = true
}
