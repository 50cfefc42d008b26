has_database = false
tenants = [
  { name = "acme", size = "small", owner = { mail = "a@example.com" } },
  { name = "core", size = "small" },
]
