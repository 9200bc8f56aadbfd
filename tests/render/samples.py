"""Attempts as a run of foo makes them, for the layouts to show."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.attempt import Attempt, Call, Outcome, Verdict
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import RecordedAttempt, to_recorded
from kubectl_ctrl.model.resources import DEPLOYMENTS, Resource
from kubectl_ctrl.render.style import Style
from tests.objects import started

FOOS = Resource("samplecontroller.k8s.io", "v1alpha1", "foos", "Foo")
NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z
WEB = Request("default", "web")

PIPE = Style(full_times=True, primaries={"foo": FOOS})
TERMINAL = Style(width=80, namespace="default", primaries={"foo": FOOS})

INITIAL = Cause(kind=CauseKind.INITIAL, at=NOON, resource=FOOS, key=WEB)
CREATED = Call(
    id="r7f3-12.1", verb="create", resource=DEPLOYMENTS, namespace="default", name="web", started=NOON, code=201
)
STATUS = Call(
    id="r7f3-12.2",
    verb="apply",
    resource=FOOS,
    namespace="default",
    name="web",
    subresource="status",
    started=NOON,
    code=200,
)
QUOTA = (
    'deployments.apps "web" is forbidden: exceeded quota: none, requested: count/deployments.apps=1, used: '
    "count/deployments.apps=0, limited: count/deployments.apps=0."
)


def written(spec: dict[str, Any], *, manager: str = "kubectl-edit", at: str = "2026-01-01T12:00:00Z") -> Obj:
    """A Foo as that manager left it."""
    fields: Obj = {"f:spec": {f"f:{name}": {} for name in spec}}
    entry = {"manager": manager, "operation": "Update", "time": at, "fieldsV1": fields}
    return {"metadata": {"name": "web", "namespace": "default", "managedFields": [entry]}, "spec": spec}


def changed(old: Obj, new: Obj, *, resource: Resource = FOOS, relisted: bool = False) -> Cause:
    return Cause(kind=CauseKind.MODIFIED, at=NOON, resource=resource, key=WEB, old=old, new=new, relisted=relisted)


SCALED = changed(
    written({"replicas": 1}, at="2026-01-01T11:00:00Z"), written({"replicas": 3}, at="2026-01-01T12:00:00Z")
)


def live_attempt(
    *causes: Cause,
    verdict: Verdict | None = None,
    calls: tuple[Call, ...] = (),
    request: Request = WEB,
    total: int | None = None,
) -> Attempt:
    start = started("r7f3-12", *causes, at=NOON, request=request, causes_total=len(causes) if total is None else total)
    done = verdict or Verdict(outcome=Outcome.DONE)
    return Attempt(start=start, took=0.041, verdict=done, calls=calls, reads=())


def attempt(*causes: Cause, **facts: Any) -> RecordedAttempt:
    return to_recorded(live_attempt(*causes, **facts))
