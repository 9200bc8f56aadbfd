"""The queue of requests: deduplicated keys with their causes beside them, delays, rate limits, priorities and fairness.

Promises: a key is handed to one worker at a time; every add that was accepted before shutdown is followed by a run that
starts after it; within one priority level and lane keys leave in the order they became ready; no ready key starves.
Belongs here: order and time of keys. Does not belong here: anything of Kubernetes; keys and causes are opaque.
"""
