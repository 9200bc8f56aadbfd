"""Rights: read from roles, derived from calls, compared with refusals, written as roles again.

Belongs here: pure functions on rules and calls.
Does not belong here: reading recordings or clusters.
"""
