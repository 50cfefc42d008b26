team   = "two"
family = "next"
