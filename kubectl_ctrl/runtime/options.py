"""How a run is to go, and what its controllers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.runtime.ids import AttemptIds
from kubectl_ctrl.runtime.observers import Observers
from kubectl_ctrl.runtime.until import Wanted
from kubectl_ctrl.value import Value, field

# controller-runtime's default, with its spread of a tenth; it catches what every other mechanism missed.
RESYNC = 10 * 3600.0


class RunOptions(Value, kw_only=True):
    """What a person may say about a run."""

    namespace: str = ""  # "" is all of them
    labels: str = ""  # a selector over the primary objects
    workers: int = 8  # per controller
    resync: float | None = RESYNC
    once: bool = False  # each object that is there once, no retries, then end
    until_idle: bool = False  # end when nothing is left to do
    until: tuple[Wanted, ...] = ()  # end when all of these hold
    timeout: float | None = None  # of the whole run
    attempt_timeout: float = 60.0
    drain: float = 30.0  # how long attempts under way may take after the first stop
    read_only_objects: bool = True  # code that changes an object of the cache in place raises; costs CPU time
    run_id: str = ""  # `r7f3`; "" draws one
    words: Mapping[str, str] = field(default_factory=dict)  # name of a controller -> what is typed for it, if not that


class Run(Value, kw_only=True):
    """What the controllers of one run share."""

    ids: AttemptIds
    observers: Observers
    clock: Clock
    rng: Random
    options: RunOptions
    on_fatal: Callable[[CtrlError], None]  # the run cannot go on
