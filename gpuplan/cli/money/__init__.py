"""The verbs about money."""
