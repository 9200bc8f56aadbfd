"""hack/realkube's parts, in the order of one `up`.

- `build`: Go modules -> a folder of programs, cached by the hash of what goes in.
- `cluster`: one named cluster in one folder: create, check, stop and start parts of it, remove.
- `kind`: what kind needs to make real clusters: a daemon (`docker`), a node image (`nodeimage`) and the images of the
  examples (`appimages`), of Debian's packages (`rootfs`) written as archives (`archive`).
- `process`: the processes that belong to a folder, and their end.
- `cli`: the commands.

Standard library only: this must run before the project has an environment. Nothing of the project is imported, and
nothing here knows what the clusters are for.

A cluster is cattle: whatever is not found complete and answering is removed and made anew (4 s), so there is no repair
path to get wrong. Everything of a cluster lies in its folder, and every process of it is started through a link in that
folder: the folder is all that one needs to find and remove it, however its creation ended.
"""

from __future__ import annotations


class Failed(Exception):
    """What was asked for did not happen; the text says what and why. Exit code 1."""

    code = 1


class CannotHere(Failed):
    """This machine lacks something that the text names: a lane is skipped, not broken. Exit code 3."""

    code = 3
