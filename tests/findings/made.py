"""Attempts and cases as in a recording of foo."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubectl_ctrl.findings.case import Body, Case
from kubectl_ctrl.model.attempt import (
    Call,
    ControllerState,
    FilteredChange,
    ObjectRead,
    Outcome,
    Tally,
    Verdict,
    WriteRequest,
)
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.diffs import Difference
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import (
    Changes,
    FactSource,
    RecordedAttempt,
    RecordedCall,
    RecordedCause,
    RecordedRun,
    RecordedState,
)
from kubectl_ctrl.model.resources import DEPLOYMENTS, Resource
from kubectl_ctrl.value import replace
from tests.history.made import FOO, FOOS, NOON, RUN

WEB = Key("default", "web")
OURS = FOO.manager


def step(path: str, old: Any, new: Any) -> Changes:
    return Changes(shown=(Difference(path=path, old=old, new=new),), total=1)


def why(
    kind: CauseKind = CauseKind.MODIFIED, *, at: float = 0.0, by: str = "kubectl-edit", **said: Any
) -> RecordedCause:
    """A change of the Foo `web` by default; `at` is in seconds after noon."""
    events = (CauseKind.ADDED, CauseKind.MODIFIED)
    known: dict[str, Any] = {
        "resource": FOOS,
        "key": WEB,
        "uid": "uid-web",
        "old_version": "1",
        "new_version": "2",
        "writers": tuple(by.split(" or ")) if by and kind in events else (),
        "changes": step("spec.replicas", 3, 5) if kind is CauseKind.MODIFIED else Changes(),
    }
    return RecordedCause(kind=kind, at=NOON + at, **{**known, **said})


def retry(of: int, *, at: float, count: int = 1) -> RecordedCause:
    return RecordedCause(kind=CauseKind.RETRY, at=NOON + at, attempt=f"r7f3-{of}", count=count, detail="no")


def wrote(
    number: str,
    verb: str = "apply",
    *,
    at: float,
    code: int | None = 200,
    resource: Resource = DEPLOYMENTS,
    **said: Any,
) -> RecordedCall:
    changes = said.pop("changes", Changes())
    return RecordedCall(
        call=Call(
            id=f"r7f3-{number}",
            verb=verb,
            resource=resource,
            namespace="default",
            name="web",
            started=NOON + at,
            took=0.01,
            code=code,
            uid=said.pop("uid", "uid-deployment"),
            **said,
        ),
        changes=changes,
    )


def attempt(
    number: int, *causes: RecordedCause, at: float | None = None, outcome: Outcome | None = Outcome.DONE, **said: Any
) -> RecordedAttempt:
    """Attempt `#number`, by default `number` seconds after noon; without an outcome it is running."""
    started = NOON + (number if at is None else at)
    verdict = (
        None
        if outcome is None
        else Verdict(
            outcome=outcome,
            delay=said.pop("delay", 0.0),
            message=said.pop("message", ""),
            error_id=said.pop("error_id", ""),
            where=said.pop("where", ""),
        )
    )
    known: dict[str, Any] = {
        "controller": "foo",
        "request": WEB,
        "uid": "uid-web",
        "causes": causes or (why(at=number - 0.001),),
        "causes_total": len(causes) or 1,
        "queued_at": started,
        "waited": 0.001,
        "try_no": 1,
        "took": None if verdict is None else 0.02,
    }
    return RecordedAttempt(id=f"r7f3-{number}", started=started, verdict=verdict, **{**known, **said})


def state(at: float = 0.0, **said: Any) -> ControllerState:
    known: dict[str, Any] = {"controller": "foo", "leading": True, "synced": True, "entries": ()}
    return ControllerState(at=NOON + at, **{**known, **said})


def moment(at: float = 0.0, *held: FilteredChange, **said: Any) -> RecordedState:
    tally = Tally(controller="foo", at=NOON + at, filtered=(), versions=(), held=held)
    return RecordedState(run=RUN.id, state=state(at, **said), tally=tally)


def held(*by: str, at: float, changed: tuple[str, ...] = ("spec.replicas",)) -> FilteredChange:
    return FilteredChange(
        resource=FOOS,
        key=WEB,
        uid="uid-web",
        version="9",
        kind="modified",
        by=by,
        at=NOON + at,
        count=1,
        changed=changed,
    )


def body(
    obj: Mapping[str, Any] | None = None, *, at: float = 0.0, source: FactSource = FactSource.RECORDED, **meta: Any
) -> Body:
    if obj is None and not meta:
        return Body(obj=None, source=source, at=NOON + at)
    shown: Obj = {"metadata": {"name": "web", "namespace": "default", "uid": "uid-web", **meta}, **(obj or {})}
    return Body(obj=shown, source=source, at=NOON + at)


def wish(verb: str, content: Obj, *, resource: Resource = DEPLOYMENTS, how: str = "unchanged") -> WriteRequest:
    return WriteRequest(verb=verb, resource=resource, key=WEB, body=json.dumps(content), how=how)


def looked(*versions: tuple[str, str]) -> ObjectRead:
    return ObjectRead(verb="get", resource=FOOS, query="default/web", found=versions)


def case(*attempts: RecordedAttempt, now: float = 60.0, run: RecordedRun | None = None, **said: Any) -> Case:
    """The case `now` seconds after noon, by default with an active run."""
    heard = NOON + now
    known: dict[str, Any] = {
        "controller": FOO,
        "run": run or replace(RUN, seen=heard),
        "life": Life.RUNNING,
        "moment": moment(now),
        "word": "foo",
    }
    return Case(resource=FOOS, key=WEB, uid="uid-web", now=NOON + now, attempts=attempts, **{**known, **said})
