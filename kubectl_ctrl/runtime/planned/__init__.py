"""The doors in their plan form: reads are live, writes are dry runs, and what they would have made lies over the reads.

Belongs here: laying one dry run's answer over another's, the objects that exist in the plan alone, the client that
sends nothing but reads and dry runs, and going through a reconcile with it. The doors themselves are the live ones.
Does not belong here: what a plan looks like, and anything that a live run needs.
"""
