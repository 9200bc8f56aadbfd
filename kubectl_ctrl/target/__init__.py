"""The cluster that a command line addresses: found, checked by the guard, connected.

Belongs here: the choice among flags, kubeconfig and managed clusters; the guard; the flags with which a suggested
command addresses the same cluster.
Does not belong here: streams, options of a single verb, and anything done on the cluster afterwards.
"""
