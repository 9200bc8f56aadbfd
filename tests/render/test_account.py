"""The output of `explain`: each verdict, one reconcile, a controller."""

from __future__ import annotations

import json
from functools import partial
from itertools import takewhile
from typing import Any

from kubectl_ctrl.findings.account import UnreadyObject
from kubectl_ctrl.findings.case import Case
from kubectl_ctrl.findings.explanation import explain, explain_attempt
from kubectl_ctrl.findings.health import HealthInput, health
from kubectl_ctrl.model.attempt import Intent, Outcome, RaisedError, WaitingRequest
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.render.account import account_lines, single_lines
from kubectl_ctrl.render.account_json import account_json
from kubectl_ctrl.render.health import health_json, health_lines
from kubectl_ctrl.value import replace
from tests.findings.made import (
    OURS,
    WEB,
    attempt,
    body,
    case,
    held,
    looked,
    moment,
    retry,
    step,
    why,
    wish,
    wrote,
)
from tests.golden import Golden
from tests.history.made import FOO, FOOS, NOON, RUN
from tests.render.layouts import STYLES, in_every_style, sections

DENIED = (
    'The server forbids patch deployments.apps default/web (403 Forbidden): deployments.apps "web" is forbidden: User '
    '"system:serviceaccount:foo-system:kubectl-ctrl-foo" cannot patch resource "deployments" in API group "apps" in '
    'the namespace "default".'
)


def denied() -> Case:
    said: dict[str, Any] = {
        "outcome": Outcome.RETRY,
        "message": DENIED,
        "error_id": "CTRL-FORBIDDEN",
        "where": "foo/reconciler.py:62",
        "wishes": (wish("ensure", {"spec": {"replicas": 7}}, how=""),),
    }

    def refused(number: int, at: float) -> Any:
        return wrote(f"{number}.1", "patch", at=at, code=403, error=DENIED, reason="Forbidden", uid="")

    scaled = why(at=18, changes=step("spec.replicas", 5, 7), new_version="88")
    return case(
        attempt(10, scaled, at=18, causes_total=4, delay=30.0, calls=(refused(10, 18.1),), **said),
        attempt(11, retry(10, at=48), at=48, delay=30.0, try_no=2, calls=(refused(11, 48.1),), **said),
        attempt(12, retry(11, at=78, count=2), at=78, delay=30.0, try_no=3, calls=(refused(12, 78.1),), **said),
        now=92,
        bodies={(DEPLOYMENTS, WEB): body({"spec": {"replicas": 5}}, at=78)},
    )


def fought() -> Case:
    def turn(number: int) -> Any:
        cause = why(
            at=number,
            by="hpa-bot",
            resource=DEPLOYMENTS,
            uid="uid-deployment",
            new_version=f"{number}0",
            changes=step("spec.replicas", 3, 5),
        )
        back = wrote(f"{number}.1", at=number + 0.1, new_version=f"{number}1")
        return attempt(number, cause, at=number + 0.05, calls=(back,))

    return case(turn(10), turn(20), turn(30), now=33)


def blocked() -> Case:
    obj = body(
        at=31,
        deletionTimestamp="2026-01-01T12:00:30Z",
        finalizers=["backup.example.com/hold"],
        resourceVersion="9",
        managedFields=[
            {
                "manager": "backup-operator",
                "operation": "Update",
                "time": "2026-01-01T12:00:10Z",
                "fieldsV1": {"f:metadata": {"f:finalizers": {'v:"backup.example.com/hold"': {}}}},
            }
        ],
    )
    return case(
        attempt(7, why(at=31, changes=step("metadata.deletionTimestamp", None, "x"), by="")), bodies={(FOOS, WEB): obj}
    )


def waits() -> Case:
    stuck = {
        "type": "ReplicaFailure",
        "status": "True",
        "reason": "FailedCreate",
        "message": 'pods "web-5d9" is forbidden: exceeded quota: none, requested: pods=1, limited: pods=0',
    }
    deployment = body({"spec": {"replicas": 3}, "status": {"availableReplicas": 1, "conditions": [stuck]}}, at=24)
    return case(
        attempt(1, why(CauseKind.ADDED, at=1), outcome=Outcome.WAITING, message="rollout 0/3"),
        attempt(3, why(at=3), calls=(wrote("3.1", at=3.01),)),
        attempt(20, why(at=20), outcome=Outcome.WAITING, message="rollout 1/3", calls=(wrote("20.1", at=20.01),)),
        bodies={(DEPLOYMENTS, WEB): deployment},
    )


def loops() -> Case:
    def turn(number: int) -> Any:
        own = why(at=number - 0.99, by=OURS, new_version=str(number), changes=step("spec.count", number, number + 1))
        return attempt(number, own)

    return case(attempt(1), *map(turn, range(2, 12)), now=11.5)


def converged() -> Case:
    edit = attempt(7, why(at=7), calls=(wrote("7.1", at=7.01, new_version="70"),), outcome=Outcome.WAITING, message="x")
    rollout = why(
        at=9,
        by="kube-controller-manager",
        resource=DEPLOYMENTS,
        uid="uid-deployment",
        changes=step("status.availableReplicas", 4, 5),
    )
    status = {"conditions": [{"type": "Ready", "status": "True", "reason": "Available", "message": "5 replicas."}]}
    done = attempt(
        9,
        rollout,
        causes_total=4,
        calls=(wrote("9.1", at=9.01, resource=FOOS, uid="uid-web", subresource="status"),),
        wishes=(wish("ensure", {}), wish("status", status, resource=FOOS, how="answered")),
    )
    return case(edit, done, now=21)


def dead() -> Case:
    return replace(converged(), run=replace(RUN, seen=NOON + 14), life=Life.GONE, moment=moment(14))


def unseen() -> Case:
    return case(attempt(1), moment=moment(60, held("labels changed", at=30)))


def queued() -> Case:
    return case(moment=moment(60, entries=(WaitingRequest(request=WEB, state="ready", since=NOON + 50, causes=2),)))


def gone() -> Case:
    return case(attempt(1), attempt(2, why(CauseKind.DELETED, at=2, old_version="7")), older=1)


ACCOUNTS = {
    "not-converged": denied,
    "fighting": fought,
    "blocked": blocked,
    "waiting": waits,
    "looping": loops,
    "converged": converged,
    "dead": dead,
    "not-seen": unseen,
    "never-ran": queued,
    "gone": gone,
}


def test_a_number_alone_means_the_newest_run() -> None:
    edit = replace(attempt(7, why(at=7), calls=(wrote("7.1", at=7.01, new_version="70"),)), id="r111-7")
    triggered = why(at=9, resource=DEPLOYMENTS, uid="uid-deployment", new_version="70")
    known = case(edit, attempt(2, triggered, at=9), writers={("uid-deployment", "70"): ("r111-7", "r111-7.1")}, now=21)
    lines = account_lines(explain(replace(known, attempts=(known.attempts[0], retried(known)))), STYLES["120"])
    [chain] = [line for line in lines if line.startswith("CHAIN")]
    assert "→ r111-7 done → Deployment/web modified → #2 failed" in chain
    assert any("which call r111-7.1 wrote" in line for line in lines)


def retried(known: Case) -> Any:
    assert known.last is not None
    assert known.last.verdict is not None
    return replace(known.last, verdict=replace(known.last.verdict, outcome=Outcome.RETRY))


def test_each_verdict(golden: Golden) -> None:
    parts = {name: account_lines(explain(made()), STYLES["80"]) for name, made in ACCOUNTS.items()}
    golden("explain-verdicts", sections(parts))


def test_one_verdict_in_each_style(golden: Golden) -> None:
    golden("explain", in_every_style(partial(account_lines, explain(denied())), folded=False))


def test_one_reconcile(golden: Golden) -> None:
    shown = attempt(
        12,
        why(at=11.9),
        retry(11, at=11.95),
        why(at=11.97, resource=DEPLOYMENTS, key=WEB, relisted=True),
        causes_total=5,
        reads=(looked(("uid-web", "88")),),
        calls=(
            wrote("12.1", "patch", at=12.1, new_version="89", changes=step("spec.replicas", 5, 7)),
            wrote("12.2", "create", at=12.2, code=409, error="It exists."),
            wrote("12.3", "apply", at=12.3, code=None),
        ),
        intents=(Intent(type="Normal", reason="Synced", message="It is so.", about=WEB),),
        echoes=1,
        skipped=("apply foos default/web: nothing would change",),
    )
    later = attempt(13, retry(12, at=14))
    told = explain_attempt(
        case(attempt(11, outcome=Outcome.RETRY), shown, later), shown, {"r7f3-12.1": ("r7f3-12", "r7f3-14")}
    )
    golden("explain-attempt", in_every_style(partial(single_lines, told)))


def work() -> HealthInput:
    beat = why(by="noisy", changes=step("status.beat", 1, 2))
    busy = [attempt(number, beat, request=Key("default", "busy")) for number in range(10, 30)]
    rollout = why(resource=DEPLOYMENTS, changes=step("status.ready", 1, 2), by="kube-controller-manager")
    others = [
        attempt(1, rollout, calls=(wrote("1.1", at=1),), request=Key("default", "a")),
        attempt(2, rollout, request=Key("default", "a")),
        attempt(
            3, took=2.5, outcome=Outcome.RETRY, message="It failed.", where="foo/x.py:9", request=Key("default", "b")
        ),
        attempt(4, outcome=Outcome.TERMINAL, message="spec.size is -1.", request=Key("default", "c")),
    ]
    shown = case(moment=moment(60))
    return HealthInput(
        controller=FOO, run=RUN, case=shown, attempts=[*busy, *others], qualifier=None, counted={FOOS, DEPLOYMENTS}
    )


def test_a_controller(golden: Golden) -> None:
    golden("explain-controller", in_every_style(partial(health_lines, health(work()))))


def test_a_controller_is_not_healthy_while_objects_are_not_ready() -> None:
    few = tuple(
        UnreadyObject(key=Key("default", f"web-{at}"), condition="Ready=False Taken: It exists.") for at in range(6)
    )
    well = replace(health(work()), failing=(), unready=few, objects=9)
    lines = health_lines(well, STYLES["80"])
    assert lines[0] == "6 of 9 objects NOT READY — controller foo"
    assert "NOT READY default/web-0: Ready=False Taken: It exists." in lines
    assert "          and 2 more" in lines
    assert health_json(well)["notReady"][5] == {"object": "default/web-5", "said": few[5].condition}
    assert health_lines(replace(well, unready=()), STYLES["80"])[0] == "HEALTHY — controller foo"
    both = health_lines(replace(health(work()), unready=few[:1]), STYLES["80"])
    assert both[0] == "2 of 4 objects FAILING, 1 NOT READY — controller foo"


def under(label: str, lines: list[str]) -> list[str]:
    first = next(at for at, line in enumerate(lines) if line.startswith(label))
    rest = list(takewhile(lambda line: line.startswith(" "), lines[first + 1 :]))
    return [lines[first], *rest]


def test_a_long_error_takes_four_lines_and_is_complete_in_json() -> None:
    endless = "RuntimeError: " + "x" * 10_000
    broken = attempt(1, outcome=Outcome.RETRY, message=endless)
    for style in (STYLES["80"], STYLES["ascii"], STYLES["120"]):
        told = under("WHY", account_lines(explain(case(broken)), style))
        assert len(told) == 4
        assert told[-1].endswith("(full text with -o json)")
        assert style.width is not None
        assert all(len(line) <= style.width for line in told)
        failing = health(replace(work(), attempts=[broken]))
        assert len(under("FAILING", health_lines(failing, style))) == 4
        assert len(under("OUTCOME", single_lines(explain_attempt(case(broken), broken, {}), style))) == 4
        assert endless in json.dumps([account_json(explain(case(broken))), health_json(failing)])


def test_a_denied_read_is_not_shown_as_not_found() -> None:
    denied_read = replace(
        looked(), raised=RaisedError(error="Forbidden", message="The server forbids get foos.", code=403)
    )
    shown = attempt(1, outcome=Outcome.RETRY, message="no", reads=(denied_read,))
    [saw] = under("SAW", single_lines(explain_attempt(case(shown), shown, {}), STYLES["80"]))
    assert saw == "SAW       read Foo default/web (get): The server forbids get foos."


def test_text_of_a_cluster_cannot_control_the_terminal() -> None:
    evil = "\x1b[31mred\n\u202e"
    known = case(attempt(1, why(by=evil), outcome=Outcome.RETRY, message=evil, where=evil))
    lines = account_lines(explain(replace(known, key=Key("default", evil))), STYLES["80"])
    assert all(line.isprintable() for line in lines)
