"""The command line and composition root: one file per verb, one lazy table of verbs, the guard, exit codes.

Belongs here: parsing, wiring rooms together, streams, environment. A verb parses, calls, hands a result to render.
Does not belong here: logic that another front end would need too.
"""
