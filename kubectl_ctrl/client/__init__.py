"""The only HTTP to a cluster: credentials, verbs, discovery and watch streams behind one transport seam.

Belongs here: whatever turns a call on a raw object into a request and an answer into a value or an error of our tree.
Does not belong here: caching, retry policies above one call, and the meaning of any object. Foreign errors end here.
"""
