"""Local copies of what the API server holds: reflector (list and watch), store with indexes, overlay, informers.

Promises: the store changes before subscribers are called; a completed list replaces the whole store at once, deletions
included; after a write has returned, every later read shows it or something newer.
Belongs here: copies that stay correct under every failure of a watch. Does not belong here: reconcilers, queues, HTTP.
"""
