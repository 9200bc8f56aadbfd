"""The text of a replay, whole; and what stands in its JSON."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.resources import DEPLOYMENTS, SECRETS, Resource
from kubectl_ctrl.render.replay import replay_json, replay_lines
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.replay.casefile import ReplayCase
from kubectl_ctrl.replay.deviations import ComparedRequest, ComparisonResult, ReplayedAttempt
from kubectl_ctrl.value import replace
from tests.golden import Golden
from tests.render.layouts import STYLES, in_every_style, sections
from tests.render.samples import FOOS, SCALED, attempt, live_attempt

WEB = Key("default", "example-foo")

RECORDED = attempt(SCALED, request=WEB, total=2)
CASE = ReplayCase(controller="foo", primaries=(FOOS,), attempt=RECORDED)
TODAY = live_attempt(request=WEB)


def write(
    fate: ComparisonResult, verb: str, resource: Resource, *changes: Difference, number: int = 0, where: str = ""
) -> ComparedRequest:
    return ComparedRequest(
        fate=fate, verb=verb, resource=resource, key=WEB, number=number, today=1, where=where, changes=changes
    )


SAME = ReplayedAttempt(case=CASE, today=TODAY, writes=(write(ComparisonResult.SAME, "ensure", DEPLOYMENTS, number=1),))
SCRIPT = "".join(f"line {number}\n" for number in range(9))
DIFFERING = ReplayedAttempt(
    case=CASE,
    today=TODAY,
    writes=(
        write(
            ComparisonResult.DIFFERS,
            "ensure",
            DEPLOYMENTS,
            Difference(path="spec.replicas", old=3, new=4),
            Difference(path="spec.paused", old=ABSENT, new=True),
            Difference(path="spec.script", old=SCRIPT, new=SCRIPT.replace("line 4", "line four\nline 4.5")),
            Difference(path="spec.ports", old=[{"port": 80}], new=[{"port": 80}, {"port": 81}]),
            Difference(path="leave_out", old="spec.replicas", new=ABSENT),
            number=1,
            where="foo/reconciler.py:88",
        ),
        write(ComparisonResult.MISSING, "status", FOOS, number=2),
        write(
            ComparisonResult.DIFFERS,
            "create",
            SECRETS,
            Difference(path="data.a", old=HIDDEN, new=ABSENT),
            number=3,
            where="foo/reconciler.py:93",
        ),
        write(ComparisonResult.EXTRA, "delete", DEPLOYMENTS, where="foo/reconciler.py:97"),
        write(ComparisonResult.MOVED, "add_finalizer", FOOS, number=4, where="foo/reconciler.py:99"),
    ),
    events=(
        ComparedRequest(fate=ComparisonResult.SAME, verb="event", key=WEB, number=1, today=1, text="Synced"),
        ComparedRequest(
            fate=ComparisonResult.DIFFERS,
            verb="event",
            key=WEB,
            number=2,
            today=2,
            text="Scaled",
            changes=(Difference(path="message", old="Scaled to 3.", new="Scaled to 4."),),
        ),
    ),
    outcome=(
        Difference(path="outcome", old="done", new="retry"),
        Difference(path="message", old=ABSENT, new="KeyError: 'a' \x1b[31m, a rather long message for one line"),
    ),
)
UNKNOWN = ReplayedAttempt(
    case=CASE,
    today=TODAY,
    writes=(
        write(ComparisonResult.SAME, "ensure", DEPLOYMENTS, number=1, where="foo/reconciler.py:88"),
        write(ComparisonResult.UNREACHED, "status", FOOS, number=2),
    ),
    unknown=ComparedRequest(
        fate=ComparisonResult.UNKNOWN, verb="live", resource=SECRETS, text="default/key", where="foo/reconciler.py:90"
    ),
    hidden=("deployments.apps default/example-foo",),
)
CUT = ReplayedAttempt(
    case=replace(
        CASE,
        attempt=replace(
            RECORDED, verdict=Verdict(outcome=Outcome.DROPPED, message="The attempt was cut: the run was stopped.")
        ),
    ),
    today=TODAY,
    writes=(write(ComparisonResult.SAME, "ensure", DEPLOYMENTS, number=1),),
    cut=True,
)


def test_the_layout(golden: Golden) -> None:
    golden("replay", in_every_style(partial(replay_lines, DIFFERING, code="./mine.py")))


def test_replays_that_are_the_same_or_stop_early(golden: Golden) -> None:
    others = {"same": SAME, "unknown": UNKNOWN, "cut": CUT}
    parts = {name: replay_lines(one, STYLES["pipe"], code="./mine.py") for name, one in others.items()}
    golden("replay-others", sections(parts))


def test_no_line_is_wider_than_the_terminal() -> None:
    for width in (40, 60, 80):
        for line in replay_lines(DIFFERING, Style(width=width), code="./mine.py"):
            assert len(line) <= width


def test_the_json_has_everything() -> None:
    told: dict[str, Any] = json.loads(json.dumps(replay_json(DIFFERING, code="./mine.py")))
    assert told["schema"] == "kubectl-ctrl.replay/v1"
    assert (told["same"], told["attempt"], told["code"]) == (False, "r7f3-12", "./mine.py")
    first, *_, extra, _ = told["writes"]
    assert first["changes"][:2] == [
        {"path": "spec.replicas", "recorded": 3, "today": 4},
        {"path": "spec.paused", "today": True},
    ]
    assert (first["recorded"], first["where"], first["kind"]) == (1, "foo/reconciler.py:88", "Deployment")
    assert "recorded" not in extra
    assert told["writes"][2]["changes"] == [{"path": "data.a", "recorded": "***"}]
    assert told["outcome"][0] == {"path": "outcome", "recorded": "done", "today": "retry"}
    assert replay_json(UNKNOWN, code="")["unknownRead"]["text"] == "default/key"
