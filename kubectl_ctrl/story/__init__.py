"""The story of one object for `trace` and `explain`: its recorded attempts, their causes, and its current state.

Belongs here: the selection of the recording, its cluster and the object, and short reads of the live cluster.
Does not belong here: SQL (`history`), verdicts (`findings`), layout (`render`).
"""
