"""Lists of plain requests: the document, its texts, and what the packer makes of it."""
