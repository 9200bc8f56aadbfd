"""The command line and composition root: parsing, output, completion, and one file or folder per verb.

Belongs here: flags and help, wiring the rooms together, streams, signals, exit codes. A verb parses, calls a room below
and hands the result to render.
Does not belong here: logic that another front end would need too.

Where to start: `verbs/table.py` lists every verb. A verb's folder declares its flags in `__init__.py`; its body is
`main.py`.
"""
