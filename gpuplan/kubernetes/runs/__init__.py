"""Runs over nodes: as Jobs of Kubernetes itself, and as JobSets."""
