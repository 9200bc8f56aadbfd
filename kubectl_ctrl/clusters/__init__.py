"""Managed clusters: local clusters that kubectl ctrl creates, finds again, and deletes without leaving anything behind.

Belongs here: the providers, each of which drives one program (`kind`, `kwok`, or the sandbox of this package) through
the same eight methods; the code
that they share; the cluster registry, which has an entry for every managed cluster, from before its first part exists;
and `--use`, which adds a cluster to the user's own kubeconfig and removes it again.
Does not belong here: which cluster a command line addresses, what runs on a cluster, printing.

Promises: nothing is deleted that is not in the registry; everything in the registry can be deleted, however its
creation ended; and without `--use` no kubeconfig is written but the cluster's own.
"""
