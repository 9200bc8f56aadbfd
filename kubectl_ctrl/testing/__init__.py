"""The public test kit: a virtual-time event loop, a fake clock, and the sandbox with scripted faults as a transport.

Begin with `stage`, which combines them; `replay` makes a test of a recorded reconcile.

Belongs here: tools for authors of controllers, to test them without a cluster and without sleeping.
Does not belong here: tests, and anything the product needs at run time.
"""
