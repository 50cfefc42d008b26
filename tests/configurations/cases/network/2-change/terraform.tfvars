cidr = "10.1.0.0/16"
zones = {
  a = { index = 0, public = true }
  b = { index = 1, public = true, ports = [443, 8080] }
  d = { index = 3 }
}
