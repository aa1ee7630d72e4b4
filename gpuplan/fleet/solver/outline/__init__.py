"""How many of each class stand on each kind of host, at least cost, before anything is placed."""
