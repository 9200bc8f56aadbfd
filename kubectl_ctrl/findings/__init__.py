"""From recorded attempts to what they mean: pure functions that take and give values.

Belongs here: the verdicts of `explain`, the chain of causes, controller health, inference for unrecorded objects.
Does not belong here: SQL, sockets, the clock, layout.
"""
