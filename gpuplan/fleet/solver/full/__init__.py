"""Fleets that are full: who has a place, what the others lack, what would be enough for them."""
