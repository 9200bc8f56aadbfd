"""The HTTP client: credentials, verbs, discovery and watch streams, over a replaceable transport.

Belongs here: code that turns calls on raw objects into requests, and responses into values or errors of
`kubectl_ctrl.errors`. aiohttp's errors end here.
Does not belong here: caches, retries above one call, and the meaning of objects.
"""
