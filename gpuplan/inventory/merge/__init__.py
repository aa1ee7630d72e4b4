"""Readings of one host → one description: devices joined, values settled, gaps named."""
