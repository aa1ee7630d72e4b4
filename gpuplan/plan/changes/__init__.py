"""What a change of a plan does to what runs."""
