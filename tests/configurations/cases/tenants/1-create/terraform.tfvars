tenants = [
  { name = "acme", size = "large", owner = { name = "Ann" } },
  { name = "bolt" },
]
