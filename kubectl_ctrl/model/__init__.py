"""The data that all other rooms share: resources, metadata, owners, selectors, diffs, attempts and their causes.

Belongs here: immutable values, and pure functions on raw Kubernetes objects (plain dicts).
Does not belong here: I/O, time, configuration, and anything that knows a particular controller.
"""
