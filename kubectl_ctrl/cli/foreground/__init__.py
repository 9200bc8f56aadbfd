"""Controllers that run in this terminal until Ctrl-C: used by `run`, and by `up` as its last step."""
