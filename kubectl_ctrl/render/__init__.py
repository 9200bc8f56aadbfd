"""Values to text, JSON and pictures. Width, colour and the current time are arguments; nothing here prints.

Belongs here: layouts, number and time formats, escaping of data from a cluster.
Does not belong here: reading state, writing to streams, and decisions about who sees what.
"""
