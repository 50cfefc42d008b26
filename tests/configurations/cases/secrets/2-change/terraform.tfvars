password      = "other"
token_version = 2
users         = { one = { name = "One", key = "k2" }, two = { name = "Two", key = "k3" } }
