records = { www1 = "r1" }
ttl     = 30
