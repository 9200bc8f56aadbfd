"""Installs and deletes the objects that a controller needs in a cluster: CRDs, namespace, service account, rights.

Belongs here: the manifests of a controller as values, the changes that they need in a cluster, applying them, waiting
for them, and deleting them in an order that loses nothing.
Does not belong here: reconciling, the command line, and files other than the manifests of a controller.
"""
