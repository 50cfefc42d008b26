rules = [{ port = 443 }, { port = 53, sources = ["b", "a"] }]
interfaces = {
  inner = [{ to = "0.0.0.0/0" }, { to = "10.0.0.0/8", metric = 5 }]
  outer = []
}
