"""What is ordered of providers, and what processors their machines have."""
