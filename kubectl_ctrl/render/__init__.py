"""Values to text, JSON and pictures. Width, colour and the present moment are arguments; nothing here prints.

Belongs here: layouts, number and time formats, escaping of what a cluster supplied.
Does not belong here: reading state, streams, and decisions about what is worth showing to whom.
"""
