"""A bug report as a test, in one line: a controller repeats a recorded reconcile.

Export the reconcile that shows the bug, and put the file beside the test:

    kubectl ctrl record export r7f3-12 > tests/case.json

    def test_the_replicas_of_a_renamed_deployment() -> None:
        assert_replays(Path(__file__).parent / "case.json", CONTROLLER)

The test fails with the writes, fields and lines of code that differ from the file. If the file contains the bug
itself, expect the result of the corrected code: `kubectl ctrl replay case.json --code ./mine.py --bless`.
No cluster and no network is needed. Effects of a reconciler outside `ctx` are real, and its memory between reconciles
is not in the file: see `kubectl ctrl replay --help`.
"""

from __future__ import annotations

import asyncio
from os import PathLike
from pathlib import Path

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.attempt import Attempt
from kubectl_ctrl.model.record import to_recorded
from kubectl_ctrl.render.replay import replay_lines
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.replay.casefile import ReplayCase, dumps, loads
from kubectl_ctrl.replay.deviations import ReplayedAttempt
from kubectl_ctrl.replay.execution import TIMEOUT, replay
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.contract import Reconciler


def assert_replays(
    case: str | PathLike[str] | ReplayCase, code: ControllerSpec | Reconciler, *, timeout: float = TIMEOUT
) -> None:
    """Fail unless the code, a controller or its reconciler, does what the case expects. Not for coroutines."""
    check(asyncio.run(replayed(case, code, timeout=timeout)))


async def replayed(
    case: str | PathLike[str] | ReplayCase, code: ControllerSpec | Reconciler, *, timeout: float = TIMEOUT
) -> ReplayedAttempt:
    """The same for an async test: returns the result, for `check` or other assertions."""
    found = case if isinstance(case, ReplayCase) else read_case(case)
    if isinstance(code, ControllerSpec) and code.name != found.controller:
        raise ControllerError(
            f"The case is of controller {found.controller!r}, and the code is controller {code.name!r}.",
            next_step="pass the recorded controller, or its reconciler alone",
        )
    return await replay(found, code, clock=SystemClock(), timeout=timeout)


def check(found: ReplayedAttempt) -> None:
    """Fail with all differences of today's code."""
    lines = replay_lines(found, Style(), code=found.case.word or found.case.controller)
    assert found.same, "\n".join(("today's code differs from the recording.", "", *lines))


def read_case(file: str | PathLike[str]) -> ReplayCase:
    """The case in a file from `record export`."""
    return loads(Path(file).read_bytes(), str(file))


def case_of(attempt: Attempt, spec: ControllerSpec) -> ReplayCase:
    """An attempt on a stage as a case: `case_of(stage.attempts[0], CONTROLLER)`."""
    # Through its text, so that it contains exactly what a file would.
    return loads(dumps(ReplayCase(controller=spec.name, primaries=spec.primaries, attempt=to_recorded(attempt))))
