"""Clusters to play in: made with one program or another, found again, and taken away so that nothing stays.

Belongs here: the providers, each of which drives one program (`kind`, `kwok`) through the same eight methods; what they
share; the book, which knows every cluster that we made, from before the first thing of it exists; and `--use`, which
adds a cluster to the user's own kubeconfig and removes it again.
Does not belong here: which cluster a command line means, what runs on it, printing.

What is promised: nothing is taken away that is not in the book; whatever is in the book can be taken away, however its
making ended; and without `--use` no kubeconfig but the cluster's own is written.
"""
