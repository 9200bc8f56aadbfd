"""Pure data that every other room speaks: resources, metadata, owners, selectors, diffs, and one event's values.

Belongs here: frozen values and pure functions over raw Kubernetes objects (plain dicts).
Does not belong here: I/O, time, configuration, and anything that knows a particular controller.
"""
