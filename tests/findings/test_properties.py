"""For any recording there is one verdict, no error, and no CONVERGED after a failed attempt."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_ctrl.findings.account import Finding
from kubectl_ctrl.findings.case import Case, failed
from kubectl_ctrl.findings.explanation import explain
from kubectl_ctrl.model.attempt import Outcome, WaitingRequest
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.diffs import ABSENT
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.record import FactSource, RecordedAttempt, RecordedCall, RecordedCause
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.render.account import account_lines
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.value import replace
from tests.findings.made import OURS, WEB, attempt, body, case, held, looked, moment, step, why, wish, wrote
from tests.history.made import FOOS, NOON, RUN

PATHS = st.sampled_from(["spec.replicas", "status.ready", "metadata.finalizers", "metadata.labels.app"])
VALUES = st.sampled_from([3, 5, True, None, "text", ABSENT, ["example.com/hold"], {"a": 1}])
UIDS = st.sampled_from(["uid-web", "uid-deployment", ""])
VERSIONS = st.integers(1, 12).map(str)


@st.composite
def causes(draw: st.DrawFn, number: int) -> RecordedCause:
    kind = draw(st.sampled_from(CauseKind))
    return why(
        kind,
        at=number - draw(st.floats(0.0, 5.0)),
        by=draw(st.sampled_from([OURS, "kubectl-edit", "hpa-bot", ""])),
        resource=draw(st.sampled_from([FOOS, DEPLOYMENTS, None])),
        key=draw(st.sampled_from([WEB, None])),
        uid=draw(UIDS),
        new_version=draw(VERSIONS),
        attempt=draw(st.sampled_from(["", *(f"r7f3-{one}" for one in range(1, 10))])),
        relisted=draw(st.booleans()),
        changes=step(draw(PATHS), draw(VALUES), draw(VALUES)),
    )


@st.composite
def calls(draw: st.DrawFn, number: int) -> RecordedCall:
    code = draw(st.sampled_from([200, 201, 403, 409, None]))
    return wrote(
        f"{number}.1",
        draw(st.sampled_from(["create", "apply", "delete", "get"])),
        at=number,
        code=code,
        uid=draw(UIDS),
        new_version=draw(VERSIONS),
        error="no" if code in (403, 409) else "",
        changes=step(draw(PATHS), draw(VALUES), draw(VALUES)),
    )


@st.composite
def attempts(draw: st.DrawFn, number: int) -> RecordedAttempt:
    outcome = draw(st.sampled_from([*Outcome, None]))
    told: dict[str, Any] = {"outcome": outcome, "interrupted": outcome is None and draw(st.booleans())}
    if outcome is not None:
        told |= {"message": draw(st.sampled_from(["", "rollout 3/5", "it failed"])), "delay": draw(st.floats(0, 9))}
    wishes = draw(
        st.sampled_from([(), (wish("ensure", {"spec": {"replicas": 7}}),), (wish("status", {"x": 1}, how=""),)])
    )
    return attempt(
        number,
        *draw(st.lists(causes(number), max_size=3)),
        calls=tuple(draw(st.lists(calls(number), max_size=2))),
        reads=draw(st.sampled_from([(), (looked(),), (looked(("uid-web", "3")),)])),
        wishes=wishes,
        **told,
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    found = [draw(attempts(number)) for number in range(1, draw(st.integers(0, 8)) + 1)]
    bodies = draw(
        st.sampled_from(
            [
                {},
                {(FOOS, WEB): body(deletionTimestamp="2026-01-01T12:00:30Z", finalizers=["example.com/hold"])},
                {(FOOS, WEB): body(source=FactSource.LIVE)},
                {
                    (FOOS, WEB): body({"status": "odd"}),
                    (DEPLOYMENTS, WEB): body({"spec": None, "status": [1]}, labels={}),
                },
            ]
        )
    )
    now = draw(st.floats(0, 100))
    entries = draw(st.sampled_from([(), (WaitingRequest(request=WEB, state="ready", since=NOON, causes=1),)]))
    holds = draw(st.sampled_from([(), (held("a", at=5),), (held("a", "b", at=99, changed=()),)]))
    writers = {("uid-web", "3"): ("r7f3-2", "r7f3-2.1"), ("uid-deployment", "4"): ("r7f3-7", "r7f3-7.1")}
    return case(
        *found,
        now=now,
        run=draw(
            st.sampled_from([None, RUN, replace(RUN, seen=NOON + now), replace(RUN, ended=NOON, labels="app=web")])
        ),
        life=draw(st.sampled_from(Life)),
        moment=draw(st.sampled_from([None, moment(now, *holds, entries=entries), moment(now, leading=False)])),
        bodies=bodies,
        writers=draw(st.sampled_from([{}, writers])),
    )


@settings(max_examples=150, deadline=None)
@given(cases())
def test_there_is_one_verdict_and_never_converged_after_a_failure(known: Case) -> None:
    account = explain(known)
    assert account.finding in Finding
    if known.ended is not None and failed(known.ended):
        assert account.finding is not Finding.CONVERGED
    if account.qualifier is not None and account.finding is Finding.CONVERGED:
        assert not account.good
    assert account.why
    assert account.next
    assert account.tries
    assert account.chain == () or account.chain[0].link in (None, *FactSource)


@settings(max_examples=60, deadline=None)
@given(cases(), st.sampled_from([None, 40, 80, 120]), st.booleans())
def test_every_account_can_be_printed(known: Case, width: int | None, unicode: bool) -> None:
    style = Style(width=width, unicode=unicode)
    lines = account_lines(explain(known), style)
    assert lines[0]
    assert not any("\n" in line for line in lines)
    assert unicode or "\n".join(lines).isascii()
    if width is not None:
        assert all(len(line) <= max(width, 40) for line in lines if "[" not in line)
