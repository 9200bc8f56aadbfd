"""Controllers in another program: `await run(CONTROLLER)` does what `kubectl ctrl run` does, without its output.

if __name__ == "__main__":
    asyncio.run(kubectl_ctrl.run(CONTROLLER))
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.errors import ControllerError, CtrlError, Refused
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.history.pruning import Caps
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags
from kubectl_ctrl.loader.code_errors import AS_PROGRAM
from kubectl_ctrl.loader.modules import importing
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.runs.session import RunSurroundings, session
from kubectl_ctrl.runs.settings import RunPlan
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.observers import Observer
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.runtime.summary import Summary
from kubectl_ctrl.runtime.verdict import code_of
from kubectl_ctrl.target import guard
from kubectl_ctrl.target.choice import pointed
from kubectl_ctrl.target.connection import connected
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value

_log = logging.getLogger(__name__)


async def run(
    *controllers: ControllerSpec,
    context: str = "",
    kubeconfig: str = "",
    namespace: str = "",
    all_namespaces: bool = False,
    allow_context: str = "",
) -> None:
    """Run controllers until the task is cancelled, recorded for `trace` and `explain`; a CtrlError ends it before.

    The arguments are flags of `kubectl ctrl run`: a cluster that is not local raises Refused unless `allow_context`
    names its context, and so does a controller that runs already. A cancellation lets reconciles in progress finish,
    for at most 30 s; a second one cancels them. Signals are the program's own: `asyncio.run` cancels on Ctrl-C.
    An event loop that is blocked until the controller's Lease may pass to another ends the whole process, with exit
    code 1, after a log record of level CRITICAL that says so.
    """
    if importing.get():
        raise ControllerError("It starts its controllers when it is imported.", next_step=AS_PROGRAM)
    if not controllers:
        raise ControllerError("run() needs a controller.", next_step="Write: await run(CONTROLLER)")
    user = User(os.environ)  # the caller is a program, whose environment this is
    flags = ConfigFlags(context=context, kubeconfig=kubeconfig, namespace=namespace)
    plan = _plan(user, controllers, flags, all_namespaces=all_namespaces, allow=allow_context)
    connect = partial(connected, user, clock=plan.clock, rng=plan.rng, interactive=False)
    stop = Stop()
    caller = RunSurroundings(user=user, connect=connect, reporter=_LogReporter(), stop=stop)
    summary = await _drained(asyncio.create_task(session(caller, plan)), stop)
    if summary is not None and (problem := summary.problem()):
        raise problem


async def _drained(running: asyncio.Task[Summary | None], stop: Stop) -> Summary | None:
    """The result of the task. A cancellation asks it to stop, and is raised after it has stopped."""
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
            stop.request()
    if cancelled is not None:
        raise cancelled from running.exception()
    return running.result()


class _Embedded(Value):
    """A controller of the calling program; see settings.Program."""

    spec: ControllerSpec

    @property
    def word(self) -> str:
        return self.file or self.spec.name

    @property
    def file(self) -> str:
        code = code_of(self.spec.reconcile)
        return code.co_filename if code is not None else ""

    @property
    def folder(self) -> Path:
        return Path(self.file).parent

    @property
    def settings(self) -> dict[str, str]:
        return {}


class _LogReporter:
    """Reports of a run as log records; see session.Reporter."""

    def __init__(self) -> None:
        self.at_work: Callable[[], Sequence[tuple[str, bool]]] = lambda: ()

    def begin(self, run_id: str, recording: str) -> None:
        _log.info("Run %s, %s", run_id, recording, extra={"action": "begin"})

    def waiting(self, error: CtrlError) -> None:
        _log.warning("The cluster does not answer yet; retrying: %s", error.message, extra={"action": "waiting"})

    def observer(self, nobody_reads: Callable[[], None]) -> Observer:
        return lambda _value: None  # the recording has its own observer

    def stopping(self, under_way: Sequence[str]) -> None:
        _log.info("Stopping; in progress: %s", " ".join(under_way) or "nothing", extra={"action": "stopping"})


def _plan(
    user: User, controllers: Sequence[ControllerSpec], flags: ConfigFlags, *, all_namespaces: bool, allow: str
) -> RunPlan:
    """The defaults of `kubectl ctrl run` for everything but the cluster; Refused where the guard does."""
    resolved, registry = pointed(user, flags).resolved, Registry.of(user)
    try:
        guard.check(
            CommandEffect.WRITE,
            resolved,
            allow=allow,
            standing=guard.standing_list(user.config_file),
            registry=registry,
        )
    except Refused as error:  # a program has no flags
        error.next_step = f"pass allow_context={guard.to_allow(resolved)!r} if that is the cluster you mean"
        raise
    ours = guard.managed(resolved, registry)
    programs = tuple(map(_Embedded, controllers))
    return RunPlan(
        clock=SystemClock(),
        rng=random.Random(),  # noqa: S311  # for names, spreading and jitter; SystemRandom makes a system call for each number
        controllers=programs,
        resolved=resolved,
        all_namespaces=all_namespaces,
        options=RunOptions(words={one.spec.name: one.word for one in programs}),
        elect="auto",
        local=guard.is_local(resolved),
        ours=ours.name if ours is not None else "",
        takeover=False,
        holder_gone=False,
        again=lambda *more: str(ctrl("run", *(one.word for one in programs), *more)),
        as_installed=False,
        metrics_address="",
        health_address="",
        record=recording_file(user),
        caps=Caps(),
    )
