"""Money on a terminal and on a page."""
