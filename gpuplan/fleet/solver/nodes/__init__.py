"""Contents of whole nodes as columns: which of them, how often, so that all items stand at least
cost. The aggregated model says what that can cost at least; its columns cannot say how it is done.
"""
