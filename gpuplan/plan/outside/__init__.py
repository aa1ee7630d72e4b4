"""What a plan names and does not hold: ways to servers, images, charts, weights."""
