"""Pulumi programs in explicit, typed Python: a backend for each platform, and what they share."""
