"""`doctor`: its checks of the machine, the cluster and the recordings.

Belongs here: one small function per check, each returning lines as values; leftovers, each with what removes it.
Does not belong here: printing, consent, and repairs that another room does for itself.
"""
