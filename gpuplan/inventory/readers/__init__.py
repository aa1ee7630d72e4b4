"""Readers of what tools print of a host: one module a tool, each with its `READER`."""
