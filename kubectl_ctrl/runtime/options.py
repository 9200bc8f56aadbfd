"""The options of a run, and the parts that its controllers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.runtime.ids import AttemptIds
from kubectl_ctrl.runtime.observers import Observers
from kubectl_ctrl.runtime.until import UntilFlag
from kubectl_ctrl.value import Value, field

# controller-runtime's default, with its spread of a tenth; it catches changes that everything else missed.
RESYNC = 10 * 3600.0


class RunOptions(Value, kw_only=True):
    """The options of a run that a user can set."""

    namespace: str = ""  # "" is all
    labels: str = ""  # a selector over the primary objects
    workers: int = 8  # per controller
    resync: float | None = RESYNC
    once: bool = False  # reconcile each present object once without retries, then end
    until_idle: bool = False  # end when idle
    until: tuple[UntilFlag, ...] = ()  # end when all of these conditions hold
    timeout: float | None = None  # of the whole run
    attempt_timeout: float = 60.0
    drain: float = 30.0  # time for attempts under way after the first stop
    read_only_objects: bool = True  # code that changes an object of the cache in place raises; costs CPU time
    run_id: str = ""  # `r7f3`; "" draws one
    words: Mapping[str, str] = field(default_factory=dict)  # name of a controller -> what is typed for it, if not that


class Run(Value, kw_only=True):
    """The shared parts of one run's controllers."""

    ids: AttemptIds
    observers: Observers
    clock: Clock
    rng: Random
    options: RunOptions
    on_fatal: Callable[[CtrlError], None]  # the run cannot go on
