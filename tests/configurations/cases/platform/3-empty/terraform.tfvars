stages   = ["live"]
machines = 0
