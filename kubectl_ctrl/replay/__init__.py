"""A recorded attempt run again with today's code, without a cluster, and compared with what it did then.

Belongs here: case files, the recorded answers, the reader and writer that give them, the comparison.
Does not belong here: SQL (`history`), loading the code (`loader`), layout (`render`).
"""
