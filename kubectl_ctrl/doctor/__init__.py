"""`doctor`: its checks of the machine, the cluster and the recordings, and the fixes.

Belongs here: one small function per check or fix, each returning lines as values.
Does not belong here: printing, and repairs that another room does for itself.
"""
