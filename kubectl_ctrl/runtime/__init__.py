"""The controller runtime: the reconcile contract and everything that decides when a reconcile runs and what follows it.

Belongs here: triggers (change to request and cause), the worker loop, the verdict, the live `ctx.read` and
`ctx.write`, leader election, health, metrics, events, the builder and the manager that starts and stops them in order.
Does not belong here: recordings (observers get frozen values), printing, and anything of one particular controller.
"""
