"""Clusters to play in: made with one program or another, found again, and taken away so that nothing stays.

Belongs here: the providers, each of which drives one program (`kind`, `kwok`) through the same eight methods; what they
share; and the book, which knows every cluster that we made, from before the first thing of it exists.
Does not belong here: which cluster a command line means, what runs on it, the user's kubeconfig, printing.

What is promised: nothing is taken away that is not in the book; whatever is in the book can be taken away, however its
making ended; and nobody's kubeconfig but the cluster's own is written.
"""
