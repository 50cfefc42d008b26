variable "a" {
  type = list(string)
}
variable "b" {
  type    = map(any)
  default = var.x
  validation {
    condition = length(var.b) > 0
    type      = "string"
  }
}
variable "c" {
  type = string
}
variable "d" { type = map(string) }
variable "e" { type = set(any) }
variable "f" { type = "set" }
variable "g" { type = list(string) }
resource "aws_vpc" "main" /* three */ {
  a = "${var.x}${var.y}"
  b = "x${var.y}"
  c = var.x
  d = (var.x ? 1
  : 2)
  e = (
    var.x
  )
  f = foo("${bar}")
  g = "a"
  h = foo["a"]
  i = { a = 1 }
  j = var.x
  k = ["${var.x}"]
  l = { m = "${var.x}" }
  n = var.x /* c */
  o = "%{if a}b%{endif}"
  p = <<EOT
${var.x}
EOT
  q = 1 # c
}
