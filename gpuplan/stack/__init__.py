"""What every stack has, whatever its target: its README, its plan, its lock."""
