"""Reconciles of one Foo for `trace` to show: edited, merged, failed, interrupted, over two runs; made by hand."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.attempt import (
    Call,
    ControllerState,
    Depth,
    DroppedEcho,
    Intent,
    ObjectRead,
    Outcome,
    RaisedError,
    Verdict,
    WaitingRequest,
    WriteRequest,
)
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import (
    Changes,
    Incarnation,
    RecordedAttempt,
    RecordedCall,
    RecordedCause,
    RecordedState,
    Story,
)
from kubectl_ctrl.model.resources import DEPLOYMENTS, SECRETS
from kubectl_ctrl.story.scene import Scene, totals
from kubectl_ctrl.value import replace
from tests.render.samples import FOOS, NOON
from tests.render.stories import CLUSTER, RUN, call, step, triggered

WEB = Request("default", "web")
FORBIDDEN = (
    'deployments.apps "web" is forbidden: User "system:serviceaccount:foo-system:foo" cannot patch resource '
    '"deployments" in API group "apps" in the namespace "default".'
)
OLD_RUN = replace(RUN, id="r0aa", pid=77, began=NOON - 7200, ended=None, seen=NOON - 3600, gaps=3)


def attempt(number: int, at: float, *causes: RecordedCause, run: str = "r7f3", **facts: Any) -> RecordedAttempt:
    made = RecordedAttempt(
        id=f"{run}-{number}",
        controller="foo",
        request=WEB,
        uid="uid-web",
        causes=causes,
        causes_total=len(causes),
        queued_at=NOON + at - 0.002,
        started=NOON + at,
        waited=0.002,
        try_no=1,
        took=0.041,
        verdict=Verdict(outcome=Outcome.DONE),
    )
    return replace(made, **facts)


def foo_changed(at: float, old: str, new: str, changes: Changes, *writers: str, **facts: Any) -> RecordedCause:
    return triggered(
        CauseKind.MODIFIED,
        NOON + at,
        resource=FOOS,
        key=WEB,
        uid="uid-web",
        old_version=old,
        new_version=new,
        changes=changes,
        writers=writers,
        **facts,
    )


def deployment_changed(at: float, new: str, ready: int, **facts: Any) -> RecordedCause:
    changes = Changes(
        shown=(
            Difference(path="status.readyReplicas", old=ready - 1 or ABSENT, new=ready),
            Difference(path="status.conditions[type=Available].lastUpdateTime", old="a", new="b"),
            Difference(path="status.conditions[type=Available].status", old="False", new="True"),
        ),
        total=3,
    )
    return triggered(
        CauseKind.MODIFIED,
        NOON + at,
        resource=DEPLOYMENTS,
        key=WEB,
        uid="uid-deploy",
        old_version=str(int(new) - 1),
        new_version=new,
        changes=changes,
        writers=("kube-controller-manager",),
        **facts,
    )


def patched(id_: str, at: float, **facts: Any) -> Call:
    made = call("web", "patch", DEPLOYMENTS, NOON + at, 0.018, id=id_, uid="uid-deploy", old_version="80")
    return replace(made, new_version="81", **facts)


def status(id_: str, at: float, **facts: Any) -> Call:
    made = call("web", "apply", FOOS, NOON + at, 0.009, id=id_, uid="uid-web", subresource="status", old_version="90")
    return replace(made, new_version="91", **facts)


READY = Changes(
    shown=(
        Difference(path="status.conditions[type=Ready].lastTransitionTime", old="a", new="b"),
        Difference(path="status.conditions[type=Ready].status", old="False", new="True"),
        Difference(path="status.observedGeneration", old=3, new=4),
    ),
    total=3,
)
GET = ObjectRead(verb="get", resource=FOOS, query="default/web", found=(("uid-web", "90"),))
ENSURE = WriteRequest(
    verb="ensure", resource=DEPLOYMENTS, key=WEB, how="applied", uid="uid-deploy", calls=("r7f3-7.1",)
)

KILLED = attempt(
    41,
    -3700,
    triggered(CauseKind.INITIAL, NOON - 3700, resource=FOOS, key=WEB),
    run="r0aa",
    took=None,
    verdict=None,
    interrupted=True,
    calls=(RecordedCall(call=call("web", "create", DEPLOYMENTS, NOON - 3699.9, 0.0, id="r0aa-41.1", code=None)),),
)
EDITED = attempt(
    7,
    1,
    foo_changed(1, "89", "90", step("spec.replicas", 3, 5), "kubectl-edit"),
    calls=(RecordedCall(call=patched("r7f3-7.1", 1.01), changes=step("spec.replicas", 3, 5)),),
    reads=(GET, replace(GET, resource=DEPLOYMENTS, found=(("uid-deploy", "80"),))),
    wishes=(ENSURE,),
    verdict=Verdict(outcome=Outcome.AFTER, delay=5.0),
    intents=(Intent(type="Normal", reason="Scaled", message="to 5", about=WEB),),
    heard=(DroppedEcho(attempt="r7f3-7", request=WEB, uid="uid-deploy", version="81", after=0.008),),
)
LOOKED = attempt(
    8,
    6,
    triggered(CauseKind.TIMER, NOON + 6, attempt="r7f3-7", detail="5s"),
    took=0.012,
    reads=(GET,),
    skipped=("apply deployments.apps default/web: nothing would change",),
)
MERGED = attempt(
    9,
    9,
    *(deployment_changed(8 + step_ / 10, str(82 + step_), step_ + 1) for step_ in range(4)),
    foo_changed(9, "90", "93", step("metadata.labels", ABSENT, {"a": "b"}), relisted=True),
    causes_total=9,
    reads=(GET,) * 3,
    calls=(RecordedCall(call=status("r7f3-9.1", 9.01), changes=READY),),
    echoes=1,
)
SECRET = attempt(
    10,
    12,
    triggered(
        CauseKind.MODIFIED,
        NOON + 12,
        resource=SECRETS,
        key=Request("default", "tls"),
        uid="uid-tls",
        old_version="94",
        new_version="95",
        changes=Changes(shown=(Difference(path="data.key", old=HIDDEN, new=HIDDEN),), total=1),
    ),
    foo_changed(
        12.1, "93", "96", Changes(shown=(Difference(path="spec.x", old="a\x1b[2J", new=1),), total=1), "a", "b"
    ),
)
FAILED = attempt(
    11,
    20,
    foo_changed(20, "96", "97", step("spec.replicas", 5, 7), "kubectl-edit"),
    calls=(
        RecordedCall(
            call=patched(
                "r7f3-11.1", 20.01, code=403, reason="Forbidden", error=FORBIDDEN, uid="", old_version="80", sends=2
            )
        ),
    ),
    wishes=(
        replace(ENSURE, how="", uid="", calls=("r7f3-11.1",), raised=RaisedError(error="Forbidden", message=FORBIDDEN)),
    ),
    verdict=Verdict(
        outcome=Outcome.RETRY, delay=1.0, message=FORBIDDEN, error_id="CTRL-FORBIDDEN", where="foo/reconciler.py:88"
    ),
    traceback='Traceback (most recent call last):\n  File "foo/reconciler.py", line 88, in ensure\nForbidden\n',
)
RETRIED = attempt(
    12,
    21.1,
    triggered(CauseKind.RETRY, NOON + 21, attempt="r7f3-11", count=1, detail="Forbidden (403)"),
    waited=4.2,
    try_no=2,
    verdict=None,
    took=None,
)
ATTEMPTS = (KILLED, EDITED, LOOKED, MERGED, SECRET, FAILED, RETRIED)

STATE = ControllerState(
    controller="foo",
    at=NOON + 21.2,
    leading=True,
    synced=True,
    entries=(WaitingRequest(request=WEB, state="running", since=NOON + 21.1, attempt="r7f3-12"),),
    depth=Depth(running=1),
)
NOW = NOON + 60
STORY = Story(
    cluster=CLUSTER,
    runs=(RUN, OLD_RUN),
    resource=FOOS,
    key=WEB,
    uid="uid-web",
    older=(Incarnation(uid="uid-old", first=NOON - 90000, last=NOON - 86400, attempts=12),),
    attempts=ATTEMPTS,
    moments=(RecordedState(run="r7f3", state=STATE),),
    at=NOW,
)
FOO: Obj = {
    "apiVersion": "samplecontroller.k8s.io/v1alpha1",
    "kind": "Foo",
    "metadata": {"name": "web", "namespace": "default", "generation": 4},
    "spec": {"replicas": 3},
    "status": {
        "observedGeneration": 4,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T12:00:09Z"}],
    },
}
SCENE = Scene(
    totals=replace(totals(ATTEMPTS), attempts=1234),
    hidden=1227,
    over={"r0aa": "exited unexpectedly, last seen 1h1m ago"},
    object=FOO,
    seen=NOON + 21,
    live=True,
    triggers=("#12 runs; what follows is decided when it ends", "triggered by Foo, owned Deployment"),
    hint="2 of 1234 reconciles changed nothing: kubectl ctrl explain foo tells what a filter would save",
)


def body(uid: str, version: str) -> Obj | None:
    """Two versions of the Foo are kept, and none of anything else."""
    if uid != "uid-web" or version not in ("89", "90"):
        return None
    return {
        **FOO,
        "metadata": {**FOO["metadata"], "resourceVersion": version},
        "spec": {"replicas": {"89": 3, "90": 5}[version]},
    }
