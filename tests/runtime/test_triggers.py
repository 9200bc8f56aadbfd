from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, cast

import pytest

from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.change import Change
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS, HPAS, NAMESPACES, PODS, REPLICASETS
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Cached
from kubectl_ctrl.runtime.predicates import generation_changed, labels_changed, named
from kubectl_ctrl.runtime.triggers import Watching
from tests.runtime.toy import (
    BOXES,
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

TOY = controller("toy", do_nothing).for_(TOYS)
BEAR = made(TOYS, "bear")
ROBOT = made(TOYS, "robot")
BEARS = Key("default", "bear")
ROBOTS = Key("default", "robot")


def woken(spec: ControllerSpec, change: Change, shelf: Shelf | None = None) -> list[Request]:
    return [request for request, _ in Watching(spec, shelf or Shelf()).requests_of(change, 5.0)]


def held(watching: Watching) -> dict[str, int]:
    return dict(watching.held)


# --- what wakes whom ---


def test_a_primary_wakes_itself() -> None:
    for change in (added(TOYS, BEAR), modified(TOYS, BEAR, at(BEAR, "2")), deleted(TOYS, BEAR), resynced(TOYS, BEAR)):
        assert woken(TOY, change) == [BEARS]


def test_an_owned_object_wakes_the_primary_that_controls_it() -> None:
    spec = TOY.owns(CONFIGMAPS)
    assert woken(spec, added(CONFIGMAPS, owned(CONFIGMAPS, "settings", BEAR))) == [BEARS]
    assert woken(spec, deleted(CONFIGMAPS, owned(CONFIGMAPS, "settings", BEAR))) == [BEARS]
    assert woken(spec, added(CONFIGMAPS, made(CONFIGMAPS, "settings"))) == []


def test_of_several_primaries_each_wakes_its_name_and_its_children_do() -> None:
    spec = controller("toy", do_nothing).for_(TOYS, DEPLOYMENTS).owns(CONFIGMAPS)
    robot = made(DEPLOYMENTS, "robot")
    assert woken(spec, added(TOYS, BEAR)) == [BEARS]
    assert woken(spec, added(DEPLOYMENTS, robot)) == [ROBOTS]
    assert woken(spec, added(CONFIGMAPS, owned(CONFIGMAPS, "settings", BEAR))) == [BEARS]
    child = owned(CONFIGMAPS, "settings", robot)
    child["metadata"]["ownerReferences"][0] |= {"apiVersion": "apps/v1", "kind": "Deployment"}
    assert woken(spec, added(CONFIGMAPS, child)) == [ROBOTS]


def test_an_owner_that_is_not_the_controller_is_not_woken() -> None:
    child = owned(CONFIGMAPS, "settings", BEAR)
    del child["metadata"]["ownerReferences"][0]["controller"]
    assert woken(TOY.owns(CONFIGMAPS), added(CONFIGMAPS, child)) == []


def test_an_owner_is_known_by_group_and_kind_in_any_version() -> None:
    older, other = owned(CONFIGMAPS, "a", BEAR), owned(CONFIGMAPS, "b", BEAR)
    older["metadata"]["ownerReferences"][0]["apiVersion"] = "toys.example.com/v1alpha1"
    other["metadata"]["ownerReferences"][0]["apiVersion"] = "games.example.com/v1"
    spec = TOY.owns(CONFIGMAPS)
    assert (woken(spec, added(CONFIGMAPS, older)), woken(spec, added(CONFIGMAPS, other))) == ([BEARS], [])


def test_a_child_of_an_owner_that_was_recreated_wakes_its_successor_by_name() -> None:
    child = owned(CONFIGMAPS, "settings", made(TOYS, "bear", metadata={"uid": "of the one before"}))
    assert woken(TOY.owns(CONFIGMAPS), deleted(CONFIGMAPS, child)) == [BEARS]


def test_a_change_of_owner_wakes_the_old_and_the_new_one() -> None:
    change = modified(CONFIGMAPS, owned(CONFIGMAPS, "settings", BEAR), at(owned(CONFIGMAPS, "settings", ROBOT), "2"))
    assert woken(TOY.owns(CONFIGMAPS), change) == [BEARS, ROBOTS]


def test_a_cluster_scoped_owner_is_found_from_namespaced_children() -> None:
    box = made(BOXES, "big")
    spec = controller("box", do_nothing).for_(BOXES).owns(PODS).owns(NAMESPACES)
    assert woken(spec, added(PODS, owned(PODS, "pod", box))) == [Key("", "big")]


def naming(obj: Obj, cached: Cached) -> Iterable[Request]:
    return [Key("default", name) for name in obj.get("names", ())]


def test_a_mapping_is_asked_of_the_old_and_of_the_new_state() -> None:
    spec = TOY.watches(HPAS, to=naming)
    hpa = made(HPAS, "hpa", names=["bear"])
    assert woken(spec, modified(HPAS, hpa, at(hpa, "2", names=["robot", "bear"]))) == [BEARS, ROBOTS]
    assert woken(spec, resynced(HPAS, hpa)) == [BEARS]


def test_a_mapping_can_look_into_the_cache() -> None:
    def by_uid(obj: Obj, cached: Cached) -> Iterable[Request]:
        return [Key("default", found["metadata"]["name"]) for found in cached.indexed(TOYS, "uid", obj["target"])]

    change = added(HPAS, made(HPAS, "hpa", target="uid-robot"))
    assert woken(TOY.watches(HPAS, to=by_uid), change, Shelf((TOYS, BEAR), (TOYS, ROBOT))) == [ROBOTS]


def test_a_request_is_woken_once_per_change_however_many_routes_lead_to_it() -> None:
    spec = TOY.owns(CONFIGMAPS).watches(CONFIGMAPS, to=naming)
    assert woken(spec, added(CONFIGMAPS, owned(CONFIGMAPS, "settings", BEAR, names=["robot", "bear"]))) == [
        BEARS,
        ROBOTS,
    ]


def test_what_is_only_read_wakes_nobody() -> None:
    spec = TOY.reads(CONFIGMAPS)
    assert Watching(spec, Shelf()).resources == (TOYS,)
    assert woken(spec, added(CONFIGMAPS, owned(CONFIGMAPS, "settings", BEAR))) == []


# --- the owner chain ---

DEPLOYMENT = owned(DEPLOYMENTS, "bear", BEAR, metadata={"uid": "uid-deployment"})
REPLICASET = owned(REPLICASETS, "bear-1", DEPLOYMENT, metadata={"uid": "uid-replicaset"})
POD = owned(PODS, "bear-1-x", REPLICASET)
CHAIN = TOY.owns(PODS, through=(REPLICASETS, DEPLOYMENTS))


def test_every_link_of_a_chain_is_watched_and_wakes_the_primary() -> None:
    shelf = Shelf((REPLICASETS, REPLICASET), (DEPLOYMENTS, DEPLOYMENT))
    assert Watching(CHAIN, shelf).resources == (TOYS, PODS, REPLICASETS, DEPLOYMENTS)
    for resource, obj in ((PODS, POD), (REPLICASETS, REPLICASET), (DEPLOYMENTS, DEPLOYMENT)):
        assert woken(CHAIN, added(resource, obj), shelf) == [BEARS]


def test_a_link_that_has_a_clause_of_its_own_obeys_its_predicates() -> None:
    spec = TOY.owns(DEPLOYMENTS, when=generation_changed).owns(PODS, through=(REPLICASETS, DEPLOYMENTS))
    assert woken(spec, modified(DEPLOYMENTS, DEPLOYMENT, at(DEPLOYMENT, "2"))) == []


def test_a_chain_broken_by_a_link_of_another_uid_leads_nowhere() -> None:
    shelf = Shelf((REPLICASETS, at(REPLICASET, "2", metadata={"uid": "a later one"})), (DEPLOYMENTS, DEPLOYMENT))
    assert woken(CHAIN, added(PODS, POD), shelf) == []


def test_a_pod_that_outlives_its_links_still_wakes_the_primary() -> None:
    # Background deletion goes from the top: the Pod's end is seen last, when nothing above it is in the cache.
    shelf = Shelf((REPLICASETS, REPLICASET), (DEPLOYMENTS, DEPLOYMENT))
    watching = Watching(CHAIN, shelf)
    for resource, obj in ((DEPLOYMENTS, DEPLOYMENT), (REPLICASETS, REPLICASET)):
        shelf.remove(resource, obj)
        watching.requests_of(deleted(resource, obj), 5.0)
    assert [request for request, _ in watching.requests_of(deleted(PODS, POD), 5.0)] == [BEARS]


# --- what is held back is counted by name ---


def test_a_filtered_change_is_counted_under_its_predicate() -> None:
    watching = Watching(
        controller("toy", do_nothing).for_(TOYS, when=[generation_changed, labels_changed]).owns(CONFIGMAPS), Shelf()
    )
    status = modified(TOYS, BEAR, at(BEAR, "2", status={}))
    assert watching.requests_of(status, 5.0) == watching.requests_of(status, 5.0) == []
    watching.requests_of(modified(TOYS, BEAR, at(BEAR, "2", metadata={"generation": 2})), 5.0)
    watching.requests_of(added(CONFIGMAPS, made(CONFIGMAPS, "settings")), 5.0)
    assert held(watching) == {"generation changed": 2, "labels changed": 1, "not controlled by a Toy": 1}


def test_requests_outside_of_the_runs_scope_are_held_back() -> None:
    def everywhere(obj: Obj, cached: Cached) -> Iterable[Request]:
        return [Key("default", "bear"), Key("other", "bear"), Key("default", "robot")]

    watching = Watching(
        TOY.watches(HPAS, to=everywhere), Shelf(), namespace="default", selected=lambda request: request.name == "bear"
    )
    assert [request for request, _ in watching.requests_of(added(HPAS, made(HPAS, "hpa")), 5.0)] == [BEARS]
    assert held(watching) == {"outside of namespace default": 1, "not selected by this run's labels": 1}


def test_a_mapping_that_raises_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    def broken(obj: Obj, cached: Cached) -> Iterable[Request]:
        raise KeyError("spec")

    watching = Watching(TOY.watches(HPAS, to=broken).watches(HPAS, to=naming), Shelf())
    change = added(HPAS, made(HPAS, "hpa", names=["bear"]))
    with caplog.at_level(logging.ERROR):
        assert [request for request, _ in watching.requests_of(change, 5.0) * 2] == [BEARS, BEARS]
        watching.requests_of(change, 6.0)
    name = broken.__qualname__
    assert held(watching) == {f"mapping {name} raised": 2}
    assert len(caplog.records) == 1


@pytest.mark.parametrize("nonsense", ["default/bear", [["default", "bear"]], [None], None])
def test_a_mapping_that_returns_no_requests_costs_only_itself(nonsense: Any) -> None:
    def odd(obj: Obj, cached: Cached) -> Iterable[Request]:
        return cast(Iterable[Request], nonsense)

    watching = Watching(TOY.watches(HPAS, to=odd).watches(HPAS, to=naming), Shelf())
    change = added(HPAS, made(HPAS, "hpa", names=["bear"]))
    assert [request for request, _ in watching.requests_of(change, 5.0)] == [BEARS]
    assert held(watching) == {f"mapping {odd.__qualname__} raised": 1}


def test_a_generator_mapping_that_raises_halfway_wakes_nobody_twice() -> None:
    def halfway(obj: Obj, cached: Cached) -> Iterable[Request]:
        yield BEARS
        raise RuntimeError("no more")

    assert woken(TOY.watches(HPAS, to=halfway), added(HPAS, made(HPAS, "hpa"))) == [BEARS]


def test_a_predicate_that_raises_lets_the_change_pass() -> None:
    def broken(change: Change) -> bool:
        raise KeyError("spec")

    watching = Watching(controller("toy", do_nothing).for_(TOYS, when=named("odd", broken)), Shelf())
    assert [request for request, _ in watching.requests_of(added(TOYS, BEAR), 5.0)] == [BEARS]
    assert held(watching) == {"predicate odd raised": 1}


def test_a_mapping_to_nobody_is_counted() -> None:
    watching = Watching(TOY.watches(HPAS, to=naming), Shelf())
    watching.requests_of(added(HPAS, made(HPAS, "hpa")), 5.0)
    assert held(watching) == {"mapping naming: nobody": 1}


# --- the cause ---


def cause(change: Change) -> Cause:
    [(_, why)] = Watching(TOY, Shelf()).requests_of(change, 5.0)
    return why


def test_a_cause_says_which_object_went_from_which_version_to_which() -> None:
    new = at(BEAR, "2")
    why = cause(modified(TOYS, BEAR, new, relisted=True))
    assert (why.kind, why.at, why.resource, why.key, why.uid) == (CauseKind.MODIFIED, 5.0, TOYS, BEARS, "uid-bear")
    assert (why.old_version, why.new_version, why.relisted) == ("1", "2", True)
    assert why.old is BEAR
    assert why.new is new


def test_the_initial_list_and_a_resync_are_named_so() -> None:
    assert cause(added(TOYS, BEAR, initial=True)).kind is CauseKind.INITIAL
    assert cause(added(TOYS, BEAR)).kind is CauseKind.ADDED
    assert cause(resynced(TOYS, BEAR)).kind is CauseKind.RESYNC
    gone = cause(deleted(TOYS, BEAR, version=""))
    assert (gone.kind, gone.old_version, gone.new_version) == (CauseKind.DELETED, "1", "")
