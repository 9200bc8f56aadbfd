"""Recordings for tests, written by the real Recorder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.history.pruning import Caps
from kubectl_ctrl.history.writer import Recorder
from kubectl_ctrl.model.attempt import Attempt, AttemptStarted, Call, ObjectRead, Observed, Outcome, Verdict
from kubectl_ctrl.model.cause import Cause, CauseKind
from kubectl_ctrl.model.objects import Key, Obj, key_of, uid_of, version_of
from kubectl_ctrl.model.record import RecordedController, RecordedRun, RecordedType
from kubectl_ctrl.model.resources import DEPLOYMENTS, Resource
from tests.objects import started

FOOS = Resource("samplecontroller.k8s.io", "v1alpha1", "foos", "Foo")
NOON = 1_767_268_800.0  # 2026-01-01T12:00:00Z
FOO = RecordedController(name="foo", word="foo", primaries=(FOOS,), owns=(DEPLOYMENTS,), manager="kubectl-ctrl-foo")
KNOWN = (
    RecordedType(resource=FOOS, singular="foo"),
    RecordedType(resource=DEPLOYMENTS, singular="deployment", short_names=("deploy",)),
)
# `tests/render/samples.py` has attempts of this run.
RUN = RecordedRun(
    id="r7f3",
    cluster="c1",
    context="kind-dev",
    server="https://127.0.0.1:6443",
    ca="ca1",
    namespace="default",
    controllers=(FOO,),
    pid=4121,
    host="laptop",
    holder="laptop.0_4121_r7f3",
    program="0.1.0",
    began=NOON,
)


# The time of all test values: noon of a day long ago.
FOR_EVER = Caps(age=1e12)


def recording(folder: Path, *values: Observed, run: RecordedRun = RUN, known: Iterable[RecordedType] = KNOWN) -> Path:
    """The path of a recording with an ended run of these values; a further call adds a run to the same file."""
    path = folder / "history.db"
    recorder = Recorder(path, run, clock=SystemClock(), caps=FOR_EVER)
    recorder.know(known)
    for value in values:
        recorder.observe(value)
    recorder.close()
    assert not recorder.gaps
    return path


def owned(kind: str, name: str, uid: str, version: str, **spec: Any) -> Obj:
    """An object in one version."""
    meta = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec}


def woken(kind: CauseKind, new: Obj, old: Obj | None = None, resource: Resource = FOOS) -> Cause:
    """A change of an object as the cause of an attempt."""
    return Cause(
        kind=kind,
        at=NOON,
        resource=resource,
        key=key_of(new),
        uid=uid_of(new),
        old_version=version_of(old) if old else "",
        new_version=version_of(new),
        old=old,
        new=new,
    )


def begun(number: int, *causes: Cause, run: str = "r7f3", at: float = NOON, name: str = "web") -> AttemptStarted:
    """The start of an attempt for a Foo."""
    return started(f"{run}-{number}", *causes, at=at + number, request=Key("default", name))


def done(
    start: AttemptStarted, *calls: Call, outcome: Outcome = Outcome.DONE, reads: tuple[ObjectRead, ...] = ()
) -> Attempt:
    """Its end."""
    verdict = Verdict(outcome=outcome, message="" if outcome is Outcome.DONE else "It failed.")
    return Attempt(start=start, took=0.04, verdict=verdict, calls=calls, reads=reads)


def wrote(start: AttemptStarted, number: int, answer: Obj, before: Obj | None = None) -> Call:
    """A write of a Deployment with this response."""
    return Call(
        id=f"{start.id}.{number}",
        verb="apply" if before else "create",
        resource=DEPLOYMENTS,
        namespace="default",
        name=answer["metadata"]["name"],
        started=start.started,
        took=0.008,
        code=200 if before else 201,
        uid=uid_of(answer),
        old_version=version_of(before) if before else "",
        new_version=version_of(answer),
        before=before,
        sent=answer,
        answer=answer,
    )


def read_of(*objects: Obj, resource: Resource = FOOS, query: str = "default/web") -> ObjectRead:
    """A read with these results."""
    found = tuple((uid_of(obj), version_of(obj)) for obj in objects)
    return ObjectRead(verb="get", resource=resource, query=query, found=found, objects=objects)
