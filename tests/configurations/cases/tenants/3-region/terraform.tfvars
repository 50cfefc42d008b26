region = "west"
tenants = [
  { name = "acme", size = "small" },
]
