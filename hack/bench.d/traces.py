"""Time of verbs that read many reconciles: whole processes, beside one that only prints its version."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from figure import Figure, processor, wall

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from kubectl_ctrl.model.attempt import Attempt, AttemptStarted, Call, ObjectRead, Observed, Outcome, Verdict  # noqa: E402
from kubectl_ctrl.model.cause import Cause, CauseKind, Request  # noqa: E402
from kubectl_ctrl.model.objects import Obj  # noqa: E402
from kubectl_ctrl.model.resources import DEPLOYMENTS, Resource  # noqa: E402
from tests.history.made import FOOS, NOON, recording  # noqa: E402

_COUNT = 1000
_KEPT = (100, 10_000)
_WEB = Request("default", "web")


def _obj(resource: Resource, version: int, replicas: int, ready: int) -> Obj:
    conditions = [{"type": "Ready", "status": str(bool(ready % 2)), "message": f"{ready} pods"}]
    metadata = {"name": "web", "namespace": "default", "uid": resource.plural, "resourceVersion": str(version)}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {**metadata, "generation": replicas},
        "spec": {"replicas": replicas},
        "status": {"readyReplicas": ready, "conditions": conditions},
    }


def _cause(resource: Resource, at: float, version: int, old: Obj, new: Obj) -> Cause:
    return Cause(
        kind=CauseKind.MODIFIED,
        at=at,
        resource=resource,
        key=_WEB,
        uid=resource.plural,
        old_version=str(version),
        new_version=str(version + 1),
        old=old,
        new=new,
    )


def _call(id_: str, resource: Resource, at: float, step: tuple[Obj, Obj], **more: Any) -> Call:
    before, answer = step
    version = int(before["metadata"]["resourceVersion"]) - 1
    return Call(
        id=id_,
        verb="apply",
        resource=resource,
        namespace="default",
        name="web",
        started=at,
        took=0.01,
        code=200,
        uid=resource.plural,
        old_version=str(version),
        new_version=str(version + 2),
        before=before,
        answer=answer,
        **more,
    )


def _reconciles(count: int) -> Iterator[Observed]:
    """Like those after an edit of a Foo: two causes, two reads, two writes."""
    for number in range(1, count + 1):
        at, version = NOON + 3 * number, 10 * number
        foo = [_obj(FOOS, version + step, number + (step > 0), number - 1 + (step > 1)) for step in range(3)]
        deployment = [_obj(DEPLOYMENTS, version + step, number + (step > 1), number - 1 + step) for step in range(3)]
        name = f"r7f3-{number}"
        causes = (
            _cause(FOOS, at, version, foo[0], foo[1]),
            _cause(DEPLOYMENTS, at, version, deployment[0], deployment[1]),
        )
        start = AttemptStarted(
            id=name,
            controller="foo",
            request=_WEB,
            causes=causes,
            causes_total=2,
            queued_at=at,
            started=at + 0.001,
            waited=0.001,
            try_no=1,
        )
        calls = (
            _call(f"{name}.1", DEPLOYMENTS, at + 0.003, (deployment[1], deployment[2])),
            _call(f"{name}.2", FOOS, at + 0.013, (foo[1], foo[2]), subresource="status"),
        )
        reads = tuple(
            ObjectRead(
                verb="get", resource=one, query="default/web", found=((one.plural, str(version + 1)),), objects=(obj,)
            )
            for one, obj in ((FOOS, foo[1]), (DEPLOYMENTS, deployment[1]))
        )
        verdict = Verdict(outcome=Outcome.WAITING, message="rollout 1/3")
        yield Attempt(start=start, took=0.04, verdict=verdict, calls=calls, reads=reads, echoes=1)


def figures() -> Iterable[Figure]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    program = str(ROOT / "bin" / "kubectl-ctrl")
    with tempfile.TemporaryDirectory() as folder:
        file = recording(Path(folder), *_reconciles(_COUNT))
        baseline = wall([program, "version"], env)
        for name, words, bar in (
            ("trace, 1,000 reconciles printed", ["trace", "foo/web", "--last=0", "--offline"], "<= 250"),
            ("trace, the last 20 of 1,000", ["trace", "foo/web", "--last=20", "--offline"], "<= 250"),
            ("trace -o json, 1,000 reconciles", ["trace", "foo/web", "--output=json", "--offline"], ""),
            ("explain, 1,000 reconciles", ["explain", "foo/web", "--offline"], ""),
            ("record list, 1,000 reconciles", ["record", "list"], ""),
        ):
            value = wall([program, *words, f"--from={file}"], env)
            yield Figure(name=name, value=value, unit="ms", baseline=baseline, against="ms its version", bar=bar)
    for count in _KEPT:
        yield from _of_one_object(program, env, count)


def _of_one_object(program: str, env: Mapping[str, str], count: int) -> Iterable[Figure]:
    """In processor time, which must not grow with the recording."""
    verbs = {"trace": ["trace", "foo/web", "--last=20"], "explain": ["explain", "foo/web"]}
    with tempfile.TemporaryDirectory() as folder:
        file = recording(Path(folder), *_reconciles(count))
        argvs = [[program, *words, "--offline", f"--from={file}"] for words in verbs.values()]
        baseline, *values = processor([[program, "version"], *argvs], env)
        for name, value in zip(verbs, values, strict=True):
            yield Figure(
                name=f"{name} of one object, {count:,} reconciles kept",
                value=value,
                unit="ms CPU",
                baseline=baseline,
                against="ms its version",
                bar="ratio <= 2.0",
            )
