"""Money: what a stack costs with all its parts, what owned machines cost, and comparisons."""
