"""Runs a recorded attempt again with the current code, without a cluster, and compares the results.

Belongs here: case files, the recorded responses, the reader and writer that return them, the comparison.
Does not belong here: SQL (`history`), loading the code (`loader`), layout (`render`).
"""
