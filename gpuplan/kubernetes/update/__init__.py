"""A stack compiled over the one that is there: what a cluster cannot change keeps its value, gets a
new name, or stops the compiler."""
