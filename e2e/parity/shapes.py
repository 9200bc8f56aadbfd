"""The conversion of an object on write: schemas of custom resources, defaults and checks of built-in ones."""

from __future__ import annotations

from typing import Any

from e2e.parity import gaps
from e2e.parity.asks import (
    ACCOUNTS,
    DEPLOYMENTS,
    EVENS,
    EVENTS,
    FOOS,
    GROUP,
    HPAS,
    LEASES,
    MAPS,
    PODS,
    REPLICASETS,
    SECRETS,
    SERVICES,
    STATEFULSETS,
    config_map,
    deployment,
    foo,
    get,
    lease,
    patch,
    post,
    put,
    scenario,
)

_SPECS: dict[str, Any] = {
    "nothing required": {},
    "a number for a text": {"name": 7},
    "a truth for a text": {"name": True},
    "a text for a number": {"name": "a", "parts": [{"id": "x", "size": "3"}]},
    "a list for a map": {"name": "a", "labels": ["x"]},
    "a map for a list": {"name": "a", "tags": {}},
    "the pattern": {"name": "A"},
    "the length": {"name": "abcdefghi"},
    "the minimum": {"name": "a", "replicas": 0},
    "the maximum": {"name": "a", "replicas": 11},
    "the open minimum": {"name": "a", "share": -0.25},
    "the multiple": {"name": "a", "share": 0.3},
    "the enumeration": {"name": "a", "mode": "odd"},
    "a part without its key": {"name": "a", "parts": [{"size": 1}]},
    "repeated tags": {"name": "a", "tags": ["x", "x"]},
    "repeated parts": {"name": "a", "parts": [{"id": "x"}, {"id": "x"}]},
    "too many labels": {"name": "a", "labels": {"a": "", "b": "", "c": ""}},
    "a number as a label": {"name": "a", "labels": {"a": 1}},
    "too few items": {"name": "a", "plain": []},
    "too many items": {"name": "a", "plain": ["1", "2", "3"]},
    "a port of another type": {"name": "a", "port": True},
    "a null": {"name": None},
}
_FINE: dict[str, Any] = {
    "all kinds of values": {"name": "a", "port": "http", "share": 0.25, "whole": {"a": "1"}, "tags": ["x"]},
    "a port as a number": {"name": "a", "port": 80},
    "a null where nothing is": {"name": "a", "mode": None},
    "a null where a default is": {"name": "a", "replicas": None, "nested": None},
    "a default inside": {"name": "a", "nested": {}},
    "unknown fields": {"name": "a", "odd": 1, "parts": [{"id": "x", "odd": 1}], "nested": {"odd": 1}},
    "what may be unknown": {"name": "a", "free": {"a": {"b": [1, {}], "c": ""}}},
    "empty things": {"name": "a", "labels": {}, "parts": [], "tags": [], "free": {}, "whole": {}},
}
_ODD = foo("one", {"name": "a", "odd": 1, "parts": [{"id": "x", "odd": 1}]})
_CUSTOM = (
    *(scenario(f"a Foo breaks {what}", post(FOOS, foo("one", spec))) for what, spec in _SPECS.items()),
    *(scenario(f"a Foo with {what}", post(FOOS, foo("one", spec)), get(f"{FOOS}/one")) for what, spec in _FINE.items()),
    scenario("a Foo without a spec", post(FOOS, foo("one"))),
    scenario("a Foo whose spec is a text", post(FOOS, {**foo("one"), "spec": "a"}), gap=gaps.CUSTOM_TYPES),
    scenario("a Foo with unknown fields at the top", post(FOOS, {**foo("one", {"name": "a"}), "odd": 1, "data": {}})),
    scenario("unknown fields, strictly", post(FOOS, _ODD, fieldValidation="Strict")),
    scenario("unknown fields, ignored", post(FOOS, _ODD, fieldValidation="Ignore")),
    scenario("unknown fields, oddly", post(FOOS, _ODD, fieldValidation="Odd")),
    scenario(
        "unknown fields in a patch", post(FOOS, foo("one", {"name": "a"})), patch(f"{FOOS}/one", {"spec": {"odd": 1}})
    ),
    scenario(
        "unknown fields in a strict patch",
        post(FOOS, foo("one", {"name": "a"})),
        patch(f"{FOOS}/one", {"spec": {"odd": 1}}, fieldValidation="Strict"),
        gap=gaps.PATCH,
    ),
    scenario("unknown fields in metadata", post(FOOS, foo("one", {"name": "a"}, odd=1))),
    scenario(
        "a change for the worse",
        post(FOOS, foo("one", {"name": "a"})),
        patch(f"{FOOS}/one", {"spec": {"replicas": 99}}),
    ),
    scenario(
        "a default that comes back",
        post(FOOS, foo("one", {"name": "a", "replicas": 5})),
        patch(f"{FOOS}/one", {"spec": {"replicas": None}}),
    ),
    scenario(
        "generations",
        post(FOOS, foo("one", {"name": "a"})),
        patch(f"{FOOS}/one", {"spec": {"name": "b"}}),
        patch(f"{FOOS}/one", {"metadata": {"labels": {"a": "b"}}}),
        patch(f"{FOOS}/one/status", {"status": {"replicas": 1}}),
        patch(f"{FOOS}/one", {"spec": {"name": "b"}}),
    ),
    scenario(
        "generations by another version",
        post(FOOS, foo("one", {"name": "a"})),
        patch(f"/apis/{GROUP}/v1beta1/namespaces/{{ns}}/foos/one", {"spec": {"name": "b"}, "status": {"replicas": 3}}),
    ),
    scenario(
        "created in another version",
        post(
            f"/apis/{GROUP}/v1beta1/namespaces/{{ns}}/foos",
            {**foo("one", {"name": "a"}), "apiVersion": f"{GROUP}/v1beta1"},
        ),
        get(f"{FOOS}/one"),
    ),
    scenario("of another version", post(FOOS, {**foo("one", {"name": "a"}), "apiVersion": f"{GROUP}/v1beta1"})),
    scenario("of another group", post(FOOS, {**foo("one", {"name": "a"}), "apiVersion": "other.example.com/v1"})),
    scenario("of another kind", post(FOOS, {**foo("one", {"name": "a"}), "kind": "Bar"})),
    scenario(
        "a rule in CEL",
        post(EVENS, {"apiVersion": f"{GROUP}/v1", "kind": "Even", "metadata": {"name": "one"}, "number": 3}),
        gap=gaps.CEL,
    ),
    scenario("replicas of a wrong type", post(FOOS, foo("one", {"name": "a", "replicas": "3"})), gap=gaps.CUSTOM_TYPES),
    scenario("a format", post(FOOS, foo("one", {"name": "a", "when": "soon"}))),
    scenario(
        "a null that is allowed",
        post(FOOS, foo("one", {"name": "a", "maybe": None})),
    ),
)


def _pods(spec: Any, **labels: str) -> Any:
    return {"template": {"metadata": {"labels": {"app": "web", **labels}}, "spec": spec}}


_CONTAINER = {"name": "web", "image": "nginx:1.27"}
_DEPLOYMENT_SPECS: dict[str, Any] = {
    "an image": {},
    "the latest image": _pods({"containers": [{**_CONTAINER, "image": "nginx:latest"}]}),
    "an image by its digest": _pods({"containers": [{**_CONTAINER, "image": f"nginx@sha256:{'0' * 64}"}]}),
    "ports": _pods({"containers": [{**_CONTAINER, "ports": [{"containerPort": 80}]}]}),
    "resources": _pods({"containers": [{**_CONTAINER, "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}]}),
    "an environment": _pods({"containers": [{**_CONTAINER, "env": [{"name": "A", "value": "b"}]}]}),
    "recreation": {"strategy": {"type": "Recreate"}},
    "a strategy of its own": {"strategy": {"rollingUpdate": {"maxSurge": 1}}},
    "empty things": _pods({"containers": [{**_CONTAINER, "env": [], "args": []}], "volumes": []}),
    "a mounted volume": _pods(
        {
            "containers": [{**_CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        }
    ),
    "two containers": _pods(
        {"containers": [_CONTAINER, {**_CONTAINER, "name": "side"}], "initContainers": [{**_CONTAINER, "name": "init"}]}
    ),
    "a volume from a ConfigMap": _pods(
        {"containers": [_CONTAINER], "volumes": [{"name": "v", "configMap": {"name": "m"}}]}
    ),
    "a probe": _pods({"containers": [{**_CONTAINER, "livenessProbe": {"httpGet": {"path": "/", "port": 80}}}]}),
    "expressions": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
}
_NAMED = [{"name": "web", "containerPort": 80}, {"name": "web", "containerPort": 81}]
_BAD_DEPLOYMENTS: dict[str, Any] = {
    "too few replicas": {"replicas": -1},
    "replicas as a text": {"replicas": "3"},
    "another selector": {"selector": {"matchLabels": {"app": "x"}}},
    "no containers": _pods({"containers": []}),
    "no selector": {"selector": None},
    "no template": {"template": None},
    "two ports of one name": _pods({"containers": [{**_CONTAINER, "ports": _NAMED}]}),
    "a bad label": _pods({"containers": [_CONTAINER]}, bad="-x"),
    "an empty text": _pods({"containers": [{**_CONTAINER, "env": [{"name": "A", "value": ""}]}]}),
    "an empty selector of nodes": _pods({"containers": [_CONTAINER], "nodeSelector": {}}),
    "an account": _pods({"containers": [_CONTAINER], "serviceAccountName": "default"}),
    "a container without a name": _pods({"containers": [{"image": "nginx"}]}),
    "a container without an image": _pods({"containers": [{"name": "web"}]}),
    "another restart policy": _pods({"containers": [_CONTAINER], "restartPolicy": "Never"}),
}


def _hpa(**spec: Any) -> Any:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3, **spec}}


def _event(name: str, **about: Any) -> Any:
    told = {"reason": "R", "message": "m", "type": "Normal", "source": {"component": "me"}}
    return {"metadata": {"name": name}, "involvedObject": {"kind": "ConfigMap", "name": "one", **about}, **told}


def _service(**spec: Any) -> Any:
    return {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}, **spec}}


_LEASE = f"{LEASES}/one"
_BUILT_IN = (
    *(
        scenario(f"a Deployment with {what}", post(DEPLOYMENTS, deployment("web", 2, **spec), dryRun="All"))
        for what, spec in _DEPLOYMENT_SPECS.items()
    ),
    *(
        scenario(
            f"a Deployment with {what}", post(DEPLOYMENTS, deployment("web", **{"replicas": 0, **spec}), dryRun="All")
        )
        for what, spec in _BAD_DEPLOYMENTS.items()
    ),
    scenario("a StatefulSet", post(STATEFULSETS, {**deployment("web"), "kind": "StatefulSet"}, dryRun="All")),
    scenario("a ReplicaSet", post(REPLICASETS, {**deployment("web"), "kind": "ReplicaSet"}, dryRun="All")),
    scenario(
        "a Deployment that is stored", post(DEPLOYMENTS, deployment("web")), get(f"{DEPLOYMENTS}/web"), played=True
    ),
    scenario(
        "a Deployment that is replaced",
        post(DEPLOYMENTS, deployment("web")),
        put(f"{DEPLOYMENTS}/web", deployment("web", revisionHistoryLimit=3)),
        played=True,
    ),
    scenario(
        "a Deployment gets another selector",
        post(DEPLOYMENTS, deployment("web")),
        patch(
            f"{DEPLOYMENTS}/web",
            {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}}}},
        ),
    ),
    scenario(
        "an unknown field of a Deployment",
        post(DEPLOYMENTS, deployment("web", odd=1), fieldValidation="Strict", dryRun="All"),
    ),
    scenario("a Service", post(SERVICES, _service(), dryRun="All"), gap=gaps.SERVICE),
    scenario("a headless Service", post(SERVICES, _service(clusterIP="None"), dryRun="All"), gap=gaps.SERVICE),
    scenario("an account", post(ACCOUNTS, {"metadata": {"name": "one"}}), get(f"{ACCOUNTS}/one")),
    scenario(
        "a token",
        post(f"{ACCOUNTS}/one/token", {"spec": {}}),
    ),
    scenario(
        "a Pod",
        post(PODS, {"metadata": {"name": "one"}, "spec": {"containers": [_CONTAINER]}}),
        gap=gaps.NOT_ADMITTED,
    ),
    scenario("data of a wrong type", post(MAPS, {"metadata": {"name": "one"}, "data": {"a": 1}})),
    scenario("data as text", post(SECRETS, {"metadata": {"name": "one"}, "stringData": {"a": "text"}})),
    scenario(
        "data as text beside data",
        post(SECRETS, {"metadata": {"name": "one"}, "data": {"a": "eA==", "b": "eQ=="}, "stringData": {"a": "text"}}),
    ),
    scenario("empty data", post(MAPS, config_map("one", {})), post(SECRETS, {"metadata": {"name": "one"}, "data": {}})),
    scenario(
        "a Lease",
        post(LEASES, lease("one", "a")),
        put(_LEASE, lease("one", "b", resourceVersion="$0.metadata.resourceVersion")),
        put(_LEASE, lease("one", "c", resourceVersion="$0.metadata.resourceVersion")),
    ),
    scenario("a Lease that is put", put(_LEASE, lease("one", "a")), put(_LEASE, lease("one", "b"))),
    scenario("a Lease that is put with a version", put(_LEASE, lease("one", "a", resourceVersion="5"))),
    scenario(
        "a Lease that is put with a UID", put(_LEASE, lease("one", "a", uid="11111111-1111-4111-8111-111111111111"))
    ),
    scenario(
        "a Lease with times",
        post(
            LEASES,
            {
                "metadata": {"name": "one"},
                "spec": {
                    "renewTime": "2026-01-01T00:00:00.000000Z",
                    "acquireTime": "2026-01-01T00:00:00.000001Z",
                    "leaseTransitions": 0,
                },
            },
        ),
    ),
    scenario(
        "a Lease of no duration",
        post(LEASES, {"metadata": {"name": "one"}, "spec": {"leaseDurationSeconds": 0}}),
        post(LEASES, {"metadata": {"name": "two"}}),
    ),
    scenario(
        "a Lease with a broken time",
        post(LEASES, {"metadata": {"name": "one"}, "spec": {"renewTime": "soon"}}),
    ),
    scenario(
        "an Event",
        post(EVENTS, _event("one", namespace="{ns}")),
        patch(f"{EVENTS}/one", {"count": 2, "lastTimestamp": "2026-01-01T00:00:00Z"}),
    ),
    scenario("an Event elsewhere", post(EVENTS, _event("one", namespace="other")), post(EVENTS, _event("two"))),
    scenario("an Event that is put", put(f"{EVENTS}/one", _event("one", namespace="{ns}"))),
    scenario(
        "Events by their object",
        post(EVENTS, _event("one", namespace="{ns}")),
        get(EVENTS, fieldSelector="involvedObject.name=one,type=Normal,source=me"),
        get(EVENTS, fieldSelector="odd=1"),
    ),
    scenario(
        "an autoscaler", post(HPAS, _hpa(), dryRun="All"), post(HPAS, _hpa(minReplicas=2, metrics=[]), dryRun="All")
    ),
    *(
        scenario(f"an autoscaler with {spec}", post(HPAS, _hpa(**spec)))
        for spec in ({"maxReplicas": 0}, {"minReplicas": 0}, {"minReplicas": 5})
    ),
)

SCENARIOS = (*_CUSTOM, *_BUILT_IN)
