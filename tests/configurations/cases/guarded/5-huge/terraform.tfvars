size     = "huge"
replicas = 2
