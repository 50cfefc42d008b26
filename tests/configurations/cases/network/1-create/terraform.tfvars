cidr = "10.1.0.0/16"
zones = {
  a = { index = 0 }
  b = { index = 1, public = true, ports = [80, 443] }
  c = { index = 2, labels = { team = "own" }, ports = [] }
}
