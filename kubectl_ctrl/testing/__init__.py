"""The public test kit: clusters in memory or over HTTPS, virtual time, and scripted faults.

Begin with `sandbox`, a whole cluster for tests that are plain functions, and with `served`, the same for clients of any
kind. `plugin` has both as pytest fixtures. `stage` is for coroutines; `replay` makes a test of a recorded reconcile.

Belongs here: tools for authors of controllers, to test them without a cluster and without sleeping.
Does not belong here: tests, and anything the product needs at run time.
"""
