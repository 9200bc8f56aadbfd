"""Runs of controllers: starting one, and finding, locking, following and stopping those that exist.

Belongs here: one run from its settings to its summary; the locks that allow one runner per controller, cluster and
scope; runs in the background; Deployments and Leases that run a controller elsewhere; and whether a run is alive.
Does not belong here: flags, printing, and the reconcile loop itself (`runtime`).
"""
