"""A bug report as a test, in one line: what a controller did once, it is to do again.

Whoever has the bug exports the reconcile in which it shows; the file is put beside the test:

    kubectl ctrl record export r7f3-12 > tests/case.json

    def test_the_replicas_of_a_renamed_deployment() -> None:
        assert_replays(Path(__file__).parent / "case.json", CONTROLLER)

It fails with the writes, the fields and the lines of code that differ from what the file expects. When the file shows
the bug itself, let the corrected code be what is expected: `kubectl ctrl replay case.json --code ./mine.py --bless`.
Neither a cluster nor a network is needed. What a reconciler does outside `ctx` happens for real, and what it remembers
between reconciles is not in the file: see `kubectl ctrl replay --help`.
"""

from __future__ import annotations

import asyncio
from os import PathLike
from pathlib import Path

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.attempt import Attempt
from kubectl_ctrl.model.record import told
from kubectl_ctrl.render.replay import replay_lines
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.replay.casefile import Case, dumps, loads
from kubectl_ctrl.replay.deviations import Replayed
from kubectl_ctrl.replay.execution import TIMEOUT, replay
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.contract import Reconciler


def assert_replays(
    case: str | PathLike[str] | Case, code: ControllerSpec | Reconciler, *, timeout: float = TIMEOUT
) -> None:
    """Fail unless the code, a controller or its reconciler, does what the case expects. Not for use inside a loop."""
    check(asyncio.run(replayed(case, code, timeout=timeout)))


async def replayed(
    case: str | PathLike[str] | Case, code: ControllerSpec | Reconciler, *, timeout: float = TIMEOUT
) -> Replayed:
    """The same for an async test: what came of it, for `check` or to be looked at."""
    found = case if isinstance(case, Case) else read_case(case)
    if isinstance(code, ControllerSpec) and code.name != found.controller:
        raise ControllerError(
            f"The case is of controller {found.controller!r}, and the code is controller {code.name!r}.",
            next_step="give the controller that the case was recorded of, or its reconciler alone",
        )
    return await replay(found, code, clock=SystemClock(), timeout=timeout)


def check(found: Replayed) -> None:
    """Fail where the code of today differs, with all that differs."""
    lines = replay_lines(found, Style(), code=found.case.word or found.case.controller)
    assert found.same, "\n".join(("today's code does not do what was recorded.", "", *lines))


def read_case(file: str | PathLike[str]) -> Case:
    """The case in a file that `record export` made."""
    return loads(Path(file).read_bytes(), str(file))


def case_of(attempt: Attempt, spec: ControllerSpec) -> Case:
    """An attempt on a stage as a case: `case_of(stage.attempts[0], CONTROLLER)`."""
    # Through its text, so that it holds what a file would hold and nothing else.
    return loads(dumps(Case(controller=spec.name, primaries=spec.primaries, attempt=told(attempt))))
