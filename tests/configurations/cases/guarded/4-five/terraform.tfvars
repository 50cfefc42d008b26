size     = "large"
replicas = 5
