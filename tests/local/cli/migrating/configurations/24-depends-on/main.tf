resource "terraform_data" "base" {
  input = "base"
}

resource "terraform_data" "middle" {
  input      = "middle"
  depends_on = [terraform_data.base]
}

resource "terraform_data" "top" {
  count      = 2
  input      = count.index
  depends_on = [terraform_data.middle]
}

module "inner" {
  source     = "./inner"
  depends_on = [terraform_data.top]
}
