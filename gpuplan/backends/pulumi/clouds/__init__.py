"""Programs for clusters that clouds manage: what they share is here, and a room for each cloud."""
