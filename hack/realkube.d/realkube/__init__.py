"""The parts of hack/realkube, in the order of one `up`.

- `build`: Go modules -> a folder of programs, cached by the hash of its inputs.
- `cluster`: one named cluster in one folder: create, check, stop and start parts of it, remove.
- `kind`: the requirements of kind clusters: a daemon (`docker`), a node image (`nodeimage`) and the images of the
  examples (`appimages`), made of Debian packages (`rootfs`) and written as archives (`archive`).
- `process`: finds and kills the processes of a folder.
- `cli`: the commands.

Standard library only: this must run before the project has an environment. It imports nothing of the project, and does
not know the purpose of the clusters.

Clusters are cattle: an incomplete cluster, or one that does not answer, is removed and recreated (4 s), so there is no
repair code to get wrong. Everything of a cluster is in its folder, and every process of it is started through a link in
that folder: the folder is enough to find and remove all of it, even after a creation that was killed.
"""

from __future__ import annotations


class Failed(Exception):
    """A command failed, for the reason in the text. Exit code 1."""

    code = 1


class CannotHere(Failed):
    """This machine lacks a requirement that the text names, so a lane is skipped. Exit code 3."""

    code = 3
