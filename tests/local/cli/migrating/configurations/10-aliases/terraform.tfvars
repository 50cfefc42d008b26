token = "a-secret-token"
