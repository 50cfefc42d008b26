user          = "bob"
token_version = 2
