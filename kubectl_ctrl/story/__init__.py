"""What is known of one object: its attempts, their causes, its state now, gathered for `trace` and `explain`.

Belongs here: which recording and which cluster are meant, one short query of the live cluster, and joining the two.
Does not belong here: SQL (`history`), verdicts (`findings`), layout (`render`).
"""
