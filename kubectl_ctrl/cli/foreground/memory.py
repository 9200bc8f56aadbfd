"""Settings of Python's garbage collector for a process with large caches of plain data.

Cached objects have no cycles, so reference counts free them. But each decoded object consists of hundreds of small
ones, and with the default thresholds the collector traverses the caches again and again: a third of the time from the
bytes of a watch to the store. Errors and tasks do have cycles, but are few; the collector still finds them, later.
"""

from __future__ import annotations

import atexit
import gc

_YOUNG = 50_000
_MIDDLE = 20
_OLD = 100


def relax() -> None:
    """Set the thresholds for the whole process."""
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    atexit.register(gc.freeze)  # or the interpreter searches the caches for garbage three times before it exits
