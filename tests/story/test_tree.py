"""Trees by owner references, and how ready each object is."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import Branch, FactSource, RecordedAttempt, RecordedCall
from kubectl_ctrl.model.resources import CONFIGMAPS, DEPLOYMENTS, PODS, REPLICASETS, SECRETS
from kubectl_ctrl.story.tree import Leaf, chain, readiness, recorded_tree, tree_of
from kubectl_ctrl.value import replace
from tests.render.samples import FOOS, NOON, attempt


def obj(name: str, *owners: str, **more: Any) -> Obj:
    meta: Obj = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-01T11:59:00Z",
    }
    if owners:
        meta["ownerReferences"] = [{"uid": f"uid-{owner}"} for owner in owners]
    return {"metadata": meta, **more}


def shape(branch: Branch) -> dict[str, Any]:
    return {one.key.name: shape(one) for one in branch.branches}


def test_types_include_those_that_kubernetes_creates() -> None:
    assert chain([FOOS, DEPLOYMENTS]) == (FOOS, DEPLOYMENTS, REPLICASETS, PODS)
    assert chain([PODS]) == (PODS,)


def test_owned_objects_are_below_their_owners() -> None:
    others = [
        Leaf(PODS, obj("web-1-b", "web-1")),
        Leaf(PODS, obj("web-1-a", "web-1")),
        Leaf(REPLICASETS, obj("web-1", "web")),
        Leaf(DEPLOYMENTS, obj("web", "root")),
        Leaf(CONFIGMAPS, obj("settings", "other", "root")),
        Leaf(PODS, obj("stranger", "other")),
        Leaf(PODS, obj("nobody's")),
    ]
    tree = tree_of(Leaf(FOOS, obj("root")), others, NOON)
    assert shape(tree) == {"settings": {}, "web": {"web-1": {"web-1-a": {}, "web-1-b": {}}}}
    assert (tree.source, tree.at, tree.created) == (FactSource.LIVE, NOON, NOON - 60)


def test_a_cycle_of_owners_ends() -> None:
    others = [Leaf(PODS, obj("a", "root", "b")), Leaf(PODS, obj("b", "a"))]
    assert shape(tree_of(Leaf(FOOS, obj("root", "b")), others, NOON)) == {"a": {"b": {"a": {}}}}


@pytest.mark.parametrize(
    ("found", "ready", "reason"),
    [
        ({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Fine"}]}}, "True", "Fine"),
        (
            {
                "status": {
                    "conditions": [
                        {"type": "Progressing", "status": "True", "reason": "x"},
                        {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
                    ]
                }
            },
            "False",
            "MinimumReplicasUnavailable",
        ),
        (
            {
                "status": {
                    "phase": "Pending",
                    "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
                    "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
                }
            },
            "False",
            "CrashLoopBackOff",
        ),
        ({"spec": {"replicas": 3}, "status": {"readyReplicas": 1}}, "False", "1/3 ready"),
        ({"spec": {"replicas": 0}, "status": {}}, "True", "0/0 ready"),
        ({"status": {"phase": "Bound"}}, "", "Bound"),
        ({}, "", ""),
    ],
)
def test_the_readiness_of_an_object(found: Obj, ready: str, reason: str) -> None:
    assert readiness(obj("x") | found) == (ready, reason)


def test_an_object_under_deletion_is_not_ready() -> None:
    dying = obj("x", status={"conditions": [{"type": "Ready", "status": "True"}]})
    dying["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
    assert readiness(dying) == ("False", "Deleting")


def recorded(*calls: Call) -> RecordedAttempt:
    return replace(attempt(), calls=tuple(RecordedCall(call=call) for call in calls))


def test_the_recorded_tree_has_created_objects_without_deleted_ones() -> None:
    call = Call(id="r7f3-1.1", verb="create", resource=DEPLOYMENTS, namespace="default", name="web", started=NOON)
    root = Branch(resource=FOOS, key=Key("default", "root"), source=FactSource.RECORDED, at=NOON)
    attempts = [
        recorded(replace(call, code=201, uid="u1")),
        recorded(replace(call, name="old", code=201), replace(call, name="refused", code=403)),
        recorded(replace(call, name="old", verb="delete", code=200), replace(call, verb="apply", code=200, uid="u1")),
        recorded(replace(call, resource=SECRETS, name="not-owned", code=201)),
        recorded(replace(call, name="web", subresource="scale", verb="patch", code=200)),
    ]
    tree = recorded_tree(root, attempts, [DEPLOYMENTS])
    [web] = tree.branches
    assert (web.key.name, web.uid, web.created, web.ready, web.source) == ("web", "u1", NOON, "", FactSource.RECORDED)
