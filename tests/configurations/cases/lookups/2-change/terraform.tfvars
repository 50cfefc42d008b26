team = "two"
