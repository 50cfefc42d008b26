size    = "large"
trigger = "b"
