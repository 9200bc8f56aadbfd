"""Python's garbage collector, set for a process that holds large caches of plain data.

Cached objects hold no cycles: they go when nobody refers to them any more. But each decoded object is hundreds of small
ones, so at the default thresholds the collector walks over the caches again and again, for a third of the time from a
watch's bytes to the store. What does make cycles (errors, tasks) is little, and is still found, later.
"""

from __future__ import annotations

import atexit
import gc

_YOUNG = 50_000
_MIDDLE = 20
_OLD = 100


def relax() -> None:
    """For the whole process; done once, by whoever is its root."""
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    atexit.register(gc.freeze)  # or the interpreter searches the caches for garbage three times before it exits
