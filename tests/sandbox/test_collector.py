"""More about owners and namespaces than in test_deletion."""

from __future__ import annotations

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import EVENTS, NAMESPACES, PODS
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import CONFIGMAPS, configmap, owned_by
from tests.sandbox.workloads import conditions, names, pod

_HOLD = "x.example.com/a"


def child(server: ScriptedServer, name: str, *owners: Obj, finalizers: tuple[str, ...] = ()) -> Obj:
    obj = configmap(name)
    obj["metadata"] |= {"ownerReferences": list(owners), "finalizers": list(finalizers)}
    return server.create(obj)


def finalize(server: ScriptedServer, name: str) -> None:
    server.change(CONFIGMAPS, name, {"metadata": {"finalizers": None}})


async def test_a_second_owner_saves_a_dependent_from_a_foreground_deletion(server: ScriptedServer) -> None:
    first, second = server.create(configmap("first")), server.create(configmap("second"))
    child(server, "both", owned_by(first), owned_by(second, controller=False))
    server.delete(CONFIGMAPS, "first", propagation="Foreground")
    assert names(server, CONFIGMAPS) == ["both", "second"]
    both = present(server.get(CONFIGMAPS, "both"))
    assert [owner["name"] for owner in both["metadata"]["ownerReferences"]] == ["second"]


async def test_a_dependent_that_is_released_blocks_no_more(server: ScriptedServer) -> None:
    owner = server.create(configmap("owner"))
    child(server, "child", owned_by(owner), finalizers=(_HOLD,))
    server.delete(CONFIGMAPS, "owner", propagation="Foreground")
    assert names(server, CONFIGMAPS) == ["child", "owner"]
    server.change(CONFIGMAPS, "child", {"metadata": {"ownerReferences": [owned_by(owner, block=False)]}})
    assert names(server, CONFIGMAPS) == ["child"]


async def test_a_cycle_blocks_nobody(server: ScriptedServer) -> None:
    one = server.create(configmap("one"))
    two = child(server, "two", owned_by(one))
    server.change(CONFIGMAPS, "one", {"metadata": {"ownerReferences": [owned_by(two)]}})
    server.delete(CONFIGMAPS, "one", propagation="Foreground")
    assert names(server, CONFIGMAPS) == []


async def test_two_that_own_each_other_stay(server: ScriptedServer) -> None:
    one = server.create(configmap("one"))
    two = child(server, "two", owned_by(one))
    server.change(CONFIGMAPS, "one", {"metadata": {"ownerReferences": [owned_by(two)]}})
    server.settle()
    assert names(server, CONFIGMAPS) == ["one", "two"]


async def test_a_dependent_with_the_orphan_finalizer_keeps_its_own_dependents(server: ScriptedServer) -> None:
    owner = server.create(configmap("owner"))
    middle = child(server, "middle", owned_by(owner), finalizers=("orphan",))
    child(server, "leaf", owned_by(middle))
    server.delete(CONFIGMAPS, "owner")
    assert names(server, CONFIGMAPS) == ["leaf"]


async def test_an_owner_in_another_namespace_is_reported(server: ScriptedServer) -> None:
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})
    owner = server.create({**configmap("owner"), "metadata": {"name": "owner", "namespace": "far"}})
    child(server, "child", owned_by(owner))
    (event,) = server.objects(EVENTS)
    title = f"[v1/ConfigMap, namespace: default, name: owner, uid: {owner['metadata']['uid']}]"
    assert (event["type"], event["reason"]) == ("Warning", "OwnerRefInvalidNamespace")
    assert event["message"] == f'ownerRef {title} does not exist in namespace "default"'
    assert names(server, CONFIGMAPS) == ["owner"]


async def test_paced_it_is_one_controller_among_others(server: ScriptedServer) -> None:
    server.instant = False
    server.actors.start([server.collector], server.storage)
    owner = server.create(configmap("owner"))
    child(server, "child", owned_by(owner))
    server.delete(CONFIGMAPS, "owner")
    assert names(server, CONFIGMAPS) == ["child"]
    server.actors.settle()
    assert names(server, CONFIGMAPS) == []


@pytest.fixture
async def far(server: ScriptedServer) -> str:
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})
    return "far"


def conditions_of(server: ScriptedServer, name: str) -> dict[str, tuple[str, str]]:
    status = present(server.get(NAMESPACES, name))["status"]
    return {one["type"]: (one["status"], one["message"]) for one in status["conditions"]}


async def test_a_namespace_reports_what_is_left(server: ScriptedServer, far: str) -> None:
    for name in ("one", "two"):
        meta: Obj = {"name": name, "namespace": far, "finalizers": [_HOLD]}
        server.create({**configmap(name), "metadata": meta})
    server.delete(NAMESPACES, far)
    assert conditions_of(server, far) == {
        "NamespaceDeletionDiscoveryFailure": ("False", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "All legacy kube types successfully parsed"),
        "NamespaceDeletionContentFailure": (
            "False",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": ("True", "Some resources are remaining: configmaps. has 2 resource instances"),
        "NamespaceFinalizersRemaining": (
            "True",
            f"Some content in the namespace has finalizers remaining: {_HOLD} in 2 resource instances",
        ),
    }
    server.change(CONFIGMAPS, "one", {"metadata": {"finalizers": None}}, namespace=far)
    assert "configmaps. has 1 resource" in conditions_of(server, far)["NamespaceContentRemaining"][1]


async def test_the_pods_of_a_namespace_go_first(server: ScriptedServer, far: str) -> None:
    running = pod("one", node="n1")
    server.create({**running, "metadata": {"name": "one", "namespace": far}})
    server.create({**configmap("map"), "metadata": {"name": "map", "namespace": far}})
    server.delete(NAMESPACES, far)
    assert names(server, CONFIGMAPS) == ["map"]
    assert conditions(present(server.get(NAMESPACES, far))["status"]) == []
    server.access("kubelet").delete(PODS, server.objects(PODS)[0], gracePeriodSeconds=0)
    server.settle()
    assert server.get(NAMESPACES, far) is None
    assert names(server, CONFIGMAPS) == []


async def test_a_namespace_with_another_finalizer_stays_empty(server: ScriptedServer, far: str) -> None:
    space = present(server.get(NAMESPACES, far))
    patch = {"spec": {"finalizers": ["kubernetes", "x.example.com/b"]}}
    server.access("test").merge(NAMESPACES, space, patch, "finalize")
    server.delete(NAMESPACES, far)
    assert present(server.get(NAMESPACES, far))["spec"]["finalizers"] == ["x.example.com/b"]
    server.access("test").merge(NAMESPACES, space, {"spec": {"finalizers": []}}, "finalize")
    assert server.get(NAMESPACES, far) is None
