"""A reconcile without effects: live reads, dry-run writes, and later reads that show the predicted state.

Belongs here: the planner, its snapshot of the cluster, its dry-run client, and the steps that it predicts.
Does not belong here: the reconcile loop (`runtime`), layout (`render`).
"""
