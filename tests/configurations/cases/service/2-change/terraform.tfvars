rules = [{ port = 443, sources = ["c"] }, { port = 53, sources = ["a", "b"] }, { port = 80 }]
log   = "debug"
interfaces = {
  inner = [{ to = "10.0.0.0/8", metric = 6 }]
}
disks = [10, 20]
