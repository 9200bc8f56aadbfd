"""The public test kit: a virtual-time event loop, a fake clock, a scripted API server behind the transport seam.

`stage` puts them together and is where to begin; `replay` makes a test of a recorded reconcile.

Belongs here: what people who write controllers need to test them without a cluster and without sleeping.
Does not belong here: tests, and anything the product needs at run time.
"""
