size = "medium"
