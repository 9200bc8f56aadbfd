"""kubectl's configuration: files, flags and environment resolved to one server, user and namespace, as kubectl does.

Belongs here: reading and merging kubeconfig files, the in-cluster fallback, proxies, kubectl's lock on the file.
Does not belong here: HTTP, and obtaining credentials (`client.auth`).
"""
