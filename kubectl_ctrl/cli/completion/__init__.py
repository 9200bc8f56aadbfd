"""`kubectl_complete-ctrl`: the entry point for shells, and the sources of its candidates."""
