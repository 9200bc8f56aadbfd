"""What the bundled controllers did is the same again, from its file; and what is broken in one of them is found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.controllers.foo import reconciler as foo
from kubectl_ctrl.controllers.memcached import reconciler as memcached
from kubectl_ctrl.controllers.podcount import reconciler as podcount
from kubectl_ctrl.controllers.podcount.reconciler import LABEL
from kubectl_ctrl.controllers.scaler import configured
from kubectl_ctrl.install.parts import read_parts
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS, REPLICASETS
from kubectl_ctrl.replay.casefile import ReplayCase
from kubectl_ctrl.replay.deviations import ComparisonResult, ReplayedAttempt
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.testing.faults import WRITES
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.replay import case_of, replayed
from kubectl_ctrl.testing.stage import Stage
from tests.controllers.scaler.stage import NIGHT, workload


def recorded(name: str, scene: Callable[[Stage], Awaitable[None]]) -> list[ReplayCase]:
    """Every attempt of a controller in a scene."""

    async def main() -> list[ReplayCase]:
        stage, parts = Stage(), read_parts(bundled.folder(name), name)
        stage.install(*parts.crds, *parts.example)
        stage.server.play_deployments()
        spec = fresh(name)
        async with stage.running(spec):
            await stage.rest(5)
            await scene(stage)
            await stage.rest(60)
        return [case_of(attempt, spec) for attempt in stage.attempts]

    return run_virtual(main())


def fresh(name: str) -> ControllerSpec:
    """As in a process of its own: the scaler remembers what it told."""
    if name == "scaler":
        return configured()
    spec = bundled.load(name)
    assert isinstance(spec, ControllerSpec)
    return spec


def again(case: ReplayCase) -> ReplayedAttempt:
    return asyncio.run(replayed(case, fresh(case.controller)))


async def trouble(stage: Stage) -> None:
    """Drift, refusals, conflicts and ends, of everything that the example brought along or made."""
    stage.server.create(workload(**NIGHT))
    for code in (409, 500, 403, 422):
        stage.server.faults.fail(WRITES, code, message=f"No: {code}.")
        for deployment in stage.server.objects(DEPLOYMENTS):
            stage.server.change(DEPLOYMENTS, deployment["metadata"]["name"], {"spec": {"replicas": code % 7}})
        for replicaset in stage.server.objects(REPLICASETS):
            stage.server.change(
                REPLICASETS, replicaset["metadata"]["name"], {"metadata": {"labels": {LABEL: str(code)}}}
            )
        await stage.rest(40)
    for deployment in stage.server.objects(DEPLOYMENTS):
        stage.server.delete(DEPLOYMENTS, deployment["metadata"]["name"])
    await stage.rest(5)


@pytest.mark.parametrize("name", BUNDLED)
def test_every_attempt_is_the_same_again(name: str) -> None:
    cases = recorded(name, trouble)
    assert len(cases) > 3
    assert any(case.attempt.wishes for case in cases)
    for case in cases:
        found = again(case)
        assert found.same, (found.differing, found.unknown, found.outcome)


async def nothing(stage: Stage) -> None:
    """The example alone."""


def with_one_more_replica(function: Callable[..., Obj]) -> Callable[..., Obj]:
    def made(*args: Any) -> Obj:
        child = function(*args)
        return {**child, "spec": {**child["spec"], "replicas": child["spec"]["replicas"] + 1}}

    return made


BROKEN: dict[str, tuple[Any, str, Callable[[Any], Any], list[str]]] = {
    "foo": (foo, "_deployment", with_one_more_replica, ["spec.replicas"]),
    "memcached": (memcached, "desired", with_one_more_replica, ["spec.replicas"]),
    "podcount": (
        podcount,
        "LABEL",
        lambda name: f"{name}s",
        ["metadata.labels.pod-count", "metadata.labels.pod-counts"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_reconciler_is_found_with_its_field(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module, part, broken, paths = BROKEN[name]
    case = next(case for case in recorded(name, nothing) if case.attempt.wishes)
    monkeypatch.setattr(module, part, broken(getattr(module, part)))
    first, *_ = again(case).differing
    assert first.fate is ComparisonResult.DIFFERS
    assert [change.path for change in first.changes] == paths
    assert first.where.startswith(f"{name}/reconciler.py:")
