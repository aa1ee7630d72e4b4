"""A cluster whose machines an inventory lists, and the order of what runs on it."""
