"""`trace` in every output format: text, JSON, graphs, traces for other tools, and an HTML page."""
