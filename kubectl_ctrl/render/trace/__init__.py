"""A story in every form that `trace` prints: text, JSON, graphs, traces for other tools, an HTML page."""
