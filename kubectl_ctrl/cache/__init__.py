"""Local copies of what the API server holds: reflector (list and watch), store with indexes, overlay, informers.

Promises: the store changes before anyone hears of it; a completed list replaces the whole store at once, deletions
included; after a write returned, every later read shows it or something newer.
Belongs here: keeping copies right under every fault of a watch. Does not belong here: reconcilers, queues, HTTP.
"""
