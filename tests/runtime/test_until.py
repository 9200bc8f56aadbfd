"""What `--until` means, without a cluster; e2e/test_until.py compares with `kubectl wait`."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runtime.summary import Reason
from kubectl_ctrl.runtime.until import UntilFlag, parse_until
from tests.runtime.managers import nothing, settings_for, spec_of
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World, crd, toy


def wanted(*sources: str) -> tuple[UntilFlag, ...]:
    return tuple(parse_until(source, "default") for source in sources)


def lacks(goal: str, obj: Obj | None) -> str:
    return parse_until(f"toy/one={goal}", "default").goal.lacks(obj)


def said(status: str, **more: Any) -> Obj:
    condition = {"type": "Ready", "status": status, **more}
    return {"metadata": {"name": "one", "generation": 3}, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("goal", "obj", "lack"),
    [
        ("condition=Ready", said("True"), ""),
        ("condition=ready=TRUE", said("True"), ""),
        ("condition=Ready=False", said("False"), ""),
        ("condition=Ready=Unknown", said("False"), "is False"),
        ("condition=Ready", said("False", reason="Busy", message="Wait."), "is False (Busy: Wait.)"),
        ("condition=Available", said("True"), "has no condition Available"),
        ("condition=Ready", None, "does not exist"),
        ("condition=Ready", {"metadata": {"name": "one"}}, "has no condition Ready"),
        ("condition=Ready", said("True", observedGeneration=3), ""),
        ("condition=Ready", said("True", observedGeneration=2), "is for generation 2, and the object has generation 3"),
        (
            "condition=Ready=False",
            said("False", observedGeneration=2),
            "is for generation 2, and the object has generation 3",
        ),
        ("create", said("True"), ""),
        ("create", None, "does not exist"),
        ("DELETE", None, ""),
        ("delete", said("True"), "exists"),
        (
            "delete",
            {"metadata": {"name": "one", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}},
            "is being deleted, blocked by a/b",
        ),
        ("jsonpath={.metadata.generation}=3", said("True"), ""),
        ("jsonpath=.metadata.generation=3", said("True"), ""),
        ("jsonpath=metadata.generation", said("True"), ""),
        ("jsonpath={.metadata.generation}=4", said("True"), "is '3'"),
        ("jsonpath={.status.phase}", said("True"), "has no such value"),
        ('jsonpath={.status.conditions[?(@.type=="Ready")].status}=True', said("True"), ""),
        ("jsonpath={.status.conditions[?(@.type!='Ready')].status}", said("True"), "has no such value"),
        ("jsonpath={.metadata}", said("True"), ""),
        ("jsonpath={.metadata}=x", said("True"), "is an object or a list, which cannot be compared"),
        ("jsonpath={.metadata.*}=x", said("True"), "has 2 such values, and only one can be compared"),
        ("jsonpath={.metadata[0]}=x", said("True"), "cannot be evaluated: A list was expected, and there is an object"),
    ],
)
def test_what_a_condition_means(goal: str, obj: Obj | None, lack: str) -> None:
    assert lacks(goal, obj) == lack


def test_a_status_of_an_older_generation_does_not_count_either() -> None:
    obj = said("True")
    assert lacks("condition=Ready", {**obj, "status": {**obj["status"], "observedGeneration": 2}}) != ""
    assert lacks("condition=Ready", {**obj, "status": {**obj["status"], "observedGeneration": 3}}) == ""


@pytest.mark.parametrize("text", ["", "foo", "foo/web", "foo/web=Ready", "foo/web=condition=", "foo/web=jsonpath="])
def test_wrong_words_are_told_with_the_right_form(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_until(text, "default")
    assert "TYPE/NAME=condition=Ready" in caught.value.next_step


async def test_a_run_ends_when_all_conditions_hold_at_once(world: World) -> None:
    goals = wanted("toy/one=jsonpath={.status.ready}=true", "configmap/gate=create")
    async with world.running(spec_of(world, settings_for), until=goals) as running:
        world.server.create(toy("one"))
        await world.rest(5)
        assert not running.task.done()
        world.server.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gate", "namespace": "default"}}
        )
        await world.rest(1)
        assert running.task.done()
    assert (await running.stopped()).reason is Reason.UNTIL


async def test_the_timeout_names_what_was_lacking_and_since_when(world: World) -> None:
    began = world.clock.now()
    goals = wanted("toy/one=condition=Ready", "configmap/gone=delete")
    async with world.running(spec_of(world, nothing), until=goals, timeout=20.0) as running:
        await world.rest(5)
        world.server.create(toy("one"))
        await world.rest(20)
    summary = await running.stopped()
    (unmet,) = (one for one in summary.unmet if "toy/one" in one.what)
    assert unmet.what == "toy/one condition=Ready: it has no condition Ready"
    assert began + 5 <= unmet.since <= began + 6
    assert not any("configmap/gone" in one.what for one in summary.unmet)
    assert summary.reason is Reason.TIMEOUT


async def test_a_type_that_comes_later_is_waited_for() -> None:
    world = World(installed=False)
    async with world.running(spec_of(world, nothing), until=wanted("toy/one=create")) as running:
        await world.rest(30)
        assert not running.task.done()
        world.install(crd())
        world.server.create(toy("one"))
        await world.rest(30)
        assert running.task.done()


async def test_it_is_watched_by_the_name_alone(world: World) -> None:
    for number in range(3):
        world.server.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}", "namespace": "default"}}
        )
    async with world.running(spec_of(world, nothing), until=wanted("configmap/c1=delete")) as running:
        await world.rest(60)
        world.server.delete(CONFIGMAPS, "c0")
        await world.rest(1)
        assert not running.task.done()
        world.server.delete(CONFIGMAPS, "c1")
        await world.rest(1)
        assert running.task.done()


async def test_of_types_that_share_a_name_the_one_that_the_run_is_for_is_meant() -> None:
    """`run foo --until foo/x=...` means that foo, also where another group's comes first in the alphabet."""
    world = World(installed=False)
    for resource in (Resource("aaa.example.com", "v1", "toys", "Toy"), TOYS):
        world.server.create(crd(resource))
    world.server.create(toy("one"))
    summary = await world.run(spec_of(world, nothing), until=wanted("toy/one=create"), timeout=30)
    assert summary.reason is Reason.UNTIL
    missing = await world.run(spec_of(world, nothing), until=wanted("toy.aaa.example.com/one=create"), timeout=5)
    assert missing.reason is Reason.TIMEOUT
