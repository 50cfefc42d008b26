stages   = ["live", "next"]
machines = 1
