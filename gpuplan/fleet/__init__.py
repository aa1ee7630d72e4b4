"""Manifests or plain requests, and an inventory → what is to be packed on which machines."""
