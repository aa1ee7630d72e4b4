"""Clusters that clouds manage: from a manifest and the catalogue to what the plan has of them."""
