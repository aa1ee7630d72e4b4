"""New price lists beside what the catalogue has: read, compared, written only when asked."""
