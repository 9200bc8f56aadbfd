"""The bundled controllers, one folder each, written on the public API of the package alone.

Belongs here: a controller's reconciler, manifests and example, and the explicit list of them below.
Does not belong here: anything that a user's own controller could not import.
"""

from __future__ import annotations

BUNDLED = ("foo", "memcached", "podcount", "scaler")
