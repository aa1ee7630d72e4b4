"""What parts of a plan cost."""
