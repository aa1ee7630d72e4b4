"""A plan tried on a real control plane, whose nodes exist on paper: the scheduler's own answer."""
