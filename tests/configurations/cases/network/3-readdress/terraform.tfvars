cidr = "10.2.0.0/16"
zones = {
  a = { index = 0, public = true }
}
