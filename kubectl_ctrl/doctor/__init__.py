"""`doctor`: its checks of the machine, the cluster and the recordings.

Belongs here: one small function per check, each returning lines as values; leftovers, each with its removal.
Does not belong here: printing, confirmations, and repairs that another room does by itself.
"""
