size    = "large"
trigger = "b"
image   = "v2"
