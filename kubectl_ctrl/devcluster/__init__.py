"""Local development clusters: bringing one up with everything on it, and deleting it.

Belongs here: the steps of `up` and `down`, their order, and what happens to a cluster when a step fails; the example
objects that `up` creates; and how to reach the cluster afterwards.
Does not belong here: flags, printing, controllers in the foreground, and what each program for clusters does
(`clusters`).

Another front end calls `up.Up` and `down.deleted` with its own `Steps` to show the progress.
"""
