"""A reconcile without effects: live reads, writes as dry runs, and their predicted state laid over later reads.

Belongs here: the planner, its snapshot of the cluster, its dry-run client, and the steps that it predicts.
Does not belong here: the reconcile loop (`runtime`), layout (`render`).
"""
