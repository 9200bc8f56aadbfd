"""Puts what a controller needs into a cluster and takes it out again: CRDs, namespace, service account, rights.

Belongs here: the manifests of a controller as values, what each would change in a cluster, doing it, waiting for it,
and undoing it in an order that loses nothing.
Does not belong here: reconciling, words of the command line, and files other than the manifests of a controller.
"""
