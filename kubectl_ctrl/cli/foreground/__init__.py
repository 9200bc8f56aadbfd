"""Controllers that run in this terminal until Ctrl-C: the work of `run`, and the last step of `up`."""
