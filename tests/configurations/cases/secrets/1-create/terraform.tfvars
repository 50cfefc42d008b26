password = "s3cret"
users    = { one = { name = "One", key = "k1" } }
