from __future__ import annotations

from kubectl_ctrl.model.attempt import FilteredChange
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.runtime.predicates import generation_changed
from kubectl_ctrl.runtime.triggers import Watching
from tests.runtime.toy import (
    CONFIGMAPS,
    TOYS,
    Shelf,
    added,
    at,
    deleted,
    do_nothing,
    made,
    modified,
    owned,
    resynced,
)

BEAR = made(TOYS, "bear", metadata={"generation": 1})
LATER = at(BEAR, "2", status={"seen": 1})
FILTERED = controller("toy", do_nothing).for_(TOYS, when=generation_changed).owns(CONFIGMAPS)


def looked(*changes: object, namespace: str = "") -> tuple[FilteredChange, ...]:
    watching = Watching(FILTERED, Shelf(), namespace=namespace)
    for moment, change in enumerate(changes):
        watching.requests_of(change, float(moment))  # type: ignore[arg-type]
    return watching.back.changes()


def test_the_last_change_that_woke_nobody_is_told_with_what_held_it_back() -> None:
    [held] = looked(modified(TOYS, BEAR, LATER), modified(TOYS, LATER, at(LATER, "3", status={"seen": 2})))
    assert held == FilteredChange(
        resource=TOYS,
        key=Key("default", "bear"),
        uid="uid-bear",
        version="3",
        kind="modified",
        by=("generation changed",),
        at=1.0,
        count=2,
        changed=("status.seen",),
    )


def test_a_change_that_wakes_somebody_ends_what_is_told_of_the_object() -> None:
    newer = at(LATER, "3", metadata={"generation": 2})
    assert looked(modified(TOYS, BEAR, LATER), modified(TOYS, LATER, newer)) == ()


def test_an_object_that_is_gone_is_not_told_of() -> None:
    stray = made(CONFIGMAPS, "stray")
    assert [held.by for held in looked(added(CONFIGMAPS, stray))] == [("not controlled by a Toy",)]
    assert looked(added(CONFIGMAPS, stray), deleted(CONFIGMAPS, stray)) == ()


def test_a_resync_is_no_change() -> None:
    stray = made(CONFIGMAPS, "stray")
    [held] = looked(added(CONFIGMAPS, stray), resynced(CONFIGMAPS, stray))
    assert (held.kind, held.count) == ("added", 1)


def test_what_is_outside_of_the_namespace_is_told() -> None:
    child = owned(CONFIGMAPS, "settings", BEAR)
    [held] = looked(added(CONFIGMAPS, child), namespace="other")
    assert held.by == ("outside of namespace other",)


def test_very_many_objects_are_not_all_remembered_and_strangers_push_out_no_primary() -> None:
    strays: list[Obj] = [made(CONFIGMAPS, f"stray-{number}") for number in range(1000)]
    told = looked(modified(TOYS, BEAR, LATER), *(added(CONFIGMAPS, stray) for stray in strays))
    assert told[0].key == Key("default", "bear")
    assert len(told) < 100
    assert told[-1].key.name == "stray-999"


def test_a_change_that_takes_one_of_several_ways_is_not_held_back() -> None:
    spec = (
        controller("toy", do_nothing)
        .for_(TOYS)
        .owns(DEPLOYMENTS)
        .watches(DEPLOYMENTS, to=lambda obj, _: [Key("default", "bear")])
    )
    watching = Watching(spec, Shelf())
    assert watching.requests_of(added(DEPLOYMENTS, made(DEPLOYMENTS, "stray")), 1.0)
    assert watching.back.changes() == ()
    assert watching.held["not controlled by a Toy"] == 1
