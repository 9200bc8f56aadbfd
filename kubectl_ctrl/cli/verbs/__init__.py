"""The verbs, one file or folder each, and the table that lists them."""
