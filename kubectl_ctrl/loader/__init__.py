"""From a name on the command line to a controller: bundled ones, files, folders and modules of the user.

Belongs here: finding and importing the user's code, reloading it, errors that point into it, the files of a new one.
Does not belong here: running a controller.
"""
