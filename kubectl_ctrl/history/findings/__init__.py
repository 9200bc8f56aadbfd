"""From what was recorded to what it means: pure functions that take and give model values.

Here belongs every judgement that explain makes. Here does not belong SQL, reading a cluster, or how an answer looks.
"""
