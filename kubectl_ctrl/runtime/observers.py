"""Observers of a run: plain functions that get frozen values, in order, and cannot harm the run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from kubectl_ctrl.model.attempt import Observed

_log = logging.getLogger(__name__)

# Called on the event loop; an observer with slow work hands it to its own thread.
Observer = Callable[[Observed], None]


class Observers:
    """Passes each value to each observer; one that raises is removed."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._observers = list(observers)
        self._removed = 0

    def add(self, observer: Observer) -> None:
        self._observers.append(observer)

    def tell(self, value: Observed) -> None:
        for observer in tuple(self._observers):
            try:
                observer(value)
            except Exception:  # noqa: BLE001  # the controller goes on
                self._remove(observer, value)

    def _remove(self, observer: Observer, value: Observed) -> None:
        self._removed += 1
        # By identity: two observers may be equal, and a nested call may have removed it already.
        self._observers = [other for other in self._observers if other is not observer]
        _log.exception(
            "An observer raised an exception and was removed; it gets no more values.",
            extra={"action": "observer.removed", "observer": repr(observer), "value": type(value).__name__},
        )

    def __repr__(self) -> str:
        return f"Observers({len(self._observers)}, removed={self._removed})"
