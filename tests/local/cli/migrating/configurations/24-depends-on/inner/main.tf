resource "terraform_data" "this" {
  input = "inner"
}
