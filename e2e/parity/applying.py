"""Server-side apply: owners, conflicts, force, transfer, dropped fields, emptied maps."""

from __future__ import annotations

from typing import Any

from e2e.parity import gaps
from e2e.parity.asks import (
    APPLY,
    DEPLOYMENTS,
    FOOS,
    GROUP,
    JSON_PATCH,
    LEASES,
    MAPS,
    apply,
    config_map,
    deployment,
    foo,
    forced,
    get,
    lease,
    patch,
    post,
    scenario,
)

_UID = "11111111-1111-4111-8111-111111111111"
_ONE, _FOO = f"{MAPS}/one", f"{FOOS}/one"
_FULL = {
    "name": "a",
    "labels": {"x": "1"},
    "parts": [{"id": "p", "size": 1}],
    "tags": ["x"],
    "plain": ["y"],
    "whole": {"a": "1"},
    "free": {"q": {"z": 1}},
}


def _maps(**data: str) -> Any:
    return config_map("one", data)


def _foos(**spec: Any) -> Any:
    return foo("one", {"name": "a", **spec})


_MAPS = (
    scenario("apply creates", apply(_ONE, _maps(a="1")), get(_ONE)),
    scenario("apply the same again", apply(_ONE, _maps(a="1")), apply(_ONE, _maps(a="1"))),
    scenario(
        "apply more, and less", apply(_ONE, _maps(a="1")), apply(_ONE, _maps(a="1", b="2")), apply(_ONE, _maps(b="2"))
    ),
    scenario("apply nothing any more", apply(_ONE, _maps(a="1")), apply(_ONE, config_map("one"))),
    scenario("apply an empty map", apply(_ONE, _maps(a="1")), apply(_ONE, _maps())),
    scenario(
        "apply a conflict",
        apply(_ONE, _maps(a="1")),
        apply(_ONE, _maps(a="2"), "you"),
        forced(_ONE, _maps(a="2"), "you"),
    ),
    scenario("apply two conflicts", apply(_ONE, _maps(a="1", b="1")), apply(_ONE, _maps(a="2", b="2"), "you")),
    scenario(
        "apply conflicts with two",
        apply(_ONE, _maps(a="1")),
        patch(_ONE, {"data": {"b": "1"}}),
        apply(_ONE, _maps(a="2", b="2"), "you"),
    ),
    scenario(
        "apply what another applied",
        apply(_ONE, _maps(a="1")),
        apply(_ONE, _maps(a="1"), "you"),
        apply(_ONE, config_map("one")),
    ),
    scenario(
        "apply after a create", post(MAPS, _maps(a="1")), apply(_ONE, _maps(a="1")), apply(_ONE, config_map("one"))
    ),
    scenario(
        "apply by the manager that created",
        post(MAPS, _maps(a="1"), fieldManager="me"),
        apply(_ONE, _maps(a="2")),
        forced(_ONE, _maps(a="2")),
    ),
    scenario(
        "a patch takes over", apply(_ONE, _maps(a="1")), patch(_ONE, {"data": {"a": "2"}}), apply(_ONE, _maps(a="1"))
    ),
    scenario("a patch to the same value", apply(_ONE, _maps(a="1")), patch(_ONE, {"data": {"a": "1"}})),
    scenario(
        "a patch removes",
        apply(_ONE, _maps(a="1", b="2")),
        patch(_ONE, {"data": {"a": None}}),
        apply(_ONE, _maps(a="1", b="2")),
    ),
    scenario("apply dry", apply(_ONE, _maps(a="1"), dryRun="All"), get(_ONE)),
    scenario(
        "apply dry, forced", apply(_ONE, _maps(a="1")), forced(_ONE, _maps(a="2"), "you", dryRun="All"), get(_ONE)
    ),
    scenario("apply an old version", apply(_ONE, _maps(a="1")), apply(_ONE, config_map("one", resourceVersion="1"))),
    scenario(
        "apply the version",
        apply(_ONE, _maps(a="1")),
        apply(_ONE, config_map("one", resourceVersion="$0.metadata.resourceVersion")),
    ),
    scenario("apply a version to nothing", apply(_ONE, config_map("one", resourceVersion="1"))),
    scenario(
        "apply a UID",
        apply(_ONE, _maps(a="1")),
        apply(_ONE, config_map("one", uid="$0.metadata.uid")),
        apply(_ONE, config_map("one", uid=_UID)),
    ),
    scenario(
        "apply a UID to nothing",
        apply(_ONE, config_map("one", uid=_UID)),
        apply(_FOO, foo("one", {"name": "a"}, uid=_UID)),
    ),
    scenario("apply without a manager", patch(_ONE, _maps(a="1"), APPLY)),
    scenario(
        "apply without a type", apply(_ONE, {"metadata": {"name": "one"}}), apply(_FOO, {"metadata": {"name": "one"}})
    ),
    scenario(
        "apply without a name",
        apply(_ONE, {"apiVersion": "v1", "kind": "ConfigMap"}),
        apply(_FOO, {**foo("", {"name": "a"}), "metadata": {}}),
    ),
    scenario("apply another name", apply(_ONE, config_map("two"))),
    scenario(
        "apply another kind", apply(_ONE, {**_maps(a="1"), "kind": "Secret"}), apply(_FOO, {**_foos(), "kind": "Bar"})
    ),
    scenario("apply another version", apply(_FOO, {**_foos(), "apiVersion": f"{GROUP}/v1beta1"})),
    scenario(
        "apply managed fields",
        apply(_ONE, config_map("one", managedFields=[{"manager": "x"}])),
        apply(_ONE, config_map("one", managedFields=[])),
    ),
    scenario("apply in no namespace", apply("/api/v1/namespaces/nowhere/configmaps/one", config_map("one"))),
    scenario(
        "apply labels",
        apply(_ONE, config_map("one", labels={"a": "b"}, annotations={"c": "d"})),
        apply(_ONE, config_map("one", labels={})),
    ),
    scenario(
        "apply finalizers",
        apply(_ONE, config_map("one", finalizers=["a.example.com/x"])),
        apply(_ONE, config_map("one", finalizers=["a.example.com/y"]), "you"),
        apply(_ONE, config_map("one")),
    ),
    scenario(
        "apply an owner",
        apply(_ONE, config_map("one")),
        apply(
            _ONE,
            config_map(
                "one",
                ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": "$0.metadata.uid"}],
            ),
        ),
        apply(_ONE, config_map("one")),
    ),
    scenario(
        "apply after managed fields went",
        post(MAPS, _maps(a="1")),
        patch(_ONE, {"metadata": {"managedFields": [{}]}}),
        apply(_ONE, _maps(a="2")),
        forced(_ONE, _maps(a="2")),
    ),
    scenario(
        "an Update entry becomes an Apply entry",
        post(MAPS, _maps(a="1", b="2"), fieldManager="me"),
        patch(
            _ONE,
            [
                {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Apply"},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": "$0.metadata.resourceVersion"},
            ],
            JSON_PATCH,
            fieldManager="me",
        ),
        apply(_ONE, _maps(a="1")),
    ),
    scenario(
        "apply a Lease", apply(f"{LEASES}/one", lease("one", "a")), apply(f"{LEASES}/one", lease("one", "b"), "you")
    ),
    scenario("apply a null", apply(_ONE, {**_maps(a="1"), "data": {"a": None}}), gap=gaps.NULL),
    scenario("apply an unknown field", apply(_ONE, {**_maps(a="1"), "odd": 1})),
)
_FOOS = (
    scenario("apply a Foo", apply(_FOO, _foos(**_FULL)), apply(_FOO, _foos(**_FULL))),
    scenario("apply a Foo, then less", apply(_FOO, foo("one", _FULL)), apply(_FOO, _foos())),
    scenario("apply a Foo, then emptied", apply(_FOO, foo("one", _FULL)), apply(_FOO, _foos(labels={}))),
    scenario("apply a Foo, then no parts", apply(_FOO, foo("one", _FULL)), apply(_FOO, _foos(parts=[]))),
    scenario("apply a Foo, then no tags", apply(_FOO, foo("one", _FULL)), apply(_FOO, _foos(tags=[]))),
    scenario("apply a Foo, then nothing free", apply(_FOO, foo("one", _FULL)), apply(_FOO, _foos(free={}))),
    scenario("apply empty maps from the start", apply(_FOO, _foos(labels={}, parts=[], tags=[], free={}))),
    scenario(
        "apply to a Foo that was created",
        post(FOOS, foo("one", _FULL)),
        apply(_FOO, foo("one", _FULL)),
        apply(_FOO, _foos()),
    ),
    scenario(
        "apply over defaults", post(FOOS, _foos()), apply(_FOO, _foos(replicas=2)), apply(_FOO, _foos(replicas=3))
    ),
    scenario(
        "apply conflicts of all kinds",
        post(FOOS, foo("one", _FULL)),
        apply(
            _FOO,
            _foos(
                labels={"x": "2"},
                parts=[{"id": "p", "size": 2}],
                tags=["z"],
                plain=["z"],
                whole={"b": "2"},
                free={"q": {"z": 2}},
            ),
        ),
    ),
    scenario(
        "force all kinds",
        post(FOOS, foo("one", _FULL)),
        forced(
            _FOO,
            _foos(
                labels={"x": "2"},
                parts=[{"id": "p", "size": 2}],
                tags=["z"],
                plain=["z"],
                whole={"b": "2"},
                free={"q": {"z": 2}},
            ),
        ),
    ),
    scenario(
        "parts of two managers",
        apply(_FOO, _foos(parts=[{"id": "p"}])),
        apply(_FOO, foo("one", {"name": "a", "parts": [{"id": "q"}, {"id": "p", "size": 2}]}), "you"),
        apply(_FOO, _foos()),
    ),
    scenario(
        "the order of parts",
        apply(_FOO, _foos(parts=[{"id": "a"}, {"id": "b"}, {"id": "c"}])),
        apply(_FOO, foo("one", {"name": "a", "parts": [{"id": "c"}, {"id": "x"}, {"id": "a"}]}), "you"),
    ),
    scenario(
        "tags of two managers",
        apply(_FOO, _foos(tags=["a", "b"])),
        apply(_FOO, _foos(tags=["b", "c"]), "you"),
        apply(_FOO, _foos(tags=["a"])),
    ),
    scenario("repeated tags", apply(_FOO, _foos(tags=["a", "a"]))),
    scenario("repeated parts", apply(_FOO, _foos(parts=[{"id": "p"}, {"id": "p"}]))),
    scenario("a part without its key", apply(_FOO, _foos(parts=[{"size": 1}]))),
    scenario(
        "apply an unknown field to a Foo", apply(_FOO, _foos(odd=1)), apply(_FOO, _foos(parts=[{"id": "p", "odd": 1}]))
    ),
    scenario("apply a wrong type to a Foo", apply(_FOO, _foos(replicas="2")), apply(_FOO, foo("one", {"name": 7}))),
    scenario("apply a broken Foo", apply(_FOO, foo("one", {"name": "A"})), apply(_FOO, foo("one", {}))),
    scenario(
        "apply a status",
        apply(_FOO, _foos()),
        apply(
            f"{_FOO}/status", {**foo("one"), "status": {"replicas": 1, "conditions": [{"type": "A", "status": "True"}]}}
        ),
        apply(f"{_FOO}/status", {**foo("one"), "status": {"replicas": 1}}),
    ),
    scenario(
        "apply conditions of two",
        apply(_FOO, _foos()),
        apply(f"{_FOO}/status", {**foo("one"), "status": {"conditions": [{"type": "A", "status": "True"}]}}),
        apply(f"{_FOO}/status", {**foo("one"), "status": {"conditions": [{"type": "B", "status": "True"}]}}, "you"),
        apply(f"{_FOO}/status", {**foo("one"), "status": {"conditions": [{"type": "A", "status": "False"}]}}, "you"),
    ),
    scenario(
        "apply a status away",
        apply(_FOO, _foos()),
        apply(f"{_FOO}/status", {**foo("one"), "status": {"replicas": 1}}),
        apply(f"{_FOO}/status", foo("one")),
    ),
    scenario(
        "apply a status with the spec",
        apply(_FOO, _foos()),
        apply(f"{_FOO}/status", {**_foos(mode="fast"), "status": {"replicas": 1}}),
    ),
    scenario("apply the spec with a status", apply(_FOO, _foos()), apply(_FOO, {**_foos(), "status": {"replicas": 9}})),
    scenario("apply a status to nothing", apply(f"{_FOO}/status", {**foo("one"), "status": {"replicas": 1}})),
    scenario(
        "apply an unknown status", apply(_FOO, _foos()), apply(f"{_FOO}/status", {**foo("one"), "status": {"odd": 1}})
    ),
    scenario(
        "apply after a scale",
        apply(_FOO, _foos(replicas=3)),
        patch(f"{_FOO}/scale", {"spec": {"replicas": 4}}, fieldManager="hpa"),
        apply(_FOO, _foos(replicas=3)),
        apply(_FOO, _foos()),
    ),
    scenario(
        "a scale to the same",
        apply(_FOO, _foos(replicas=3)),
        patch(f"{_FOO}/scale", {"spec": {"replicas": 3}}, fieldManager="hpa"),
        apply(_FOO, _foos()),
    ),
    scenario(
        "apply in two versions",
        apply(_FOO, _foos()),
        apply(
            f"/apis/{GROUP}/v1beta1/namespaces/{{ns}}/foos/one",
            {**_foos(mode="slow"), "apiVersion": f"{GROUP}/v1beta1"},
        ),
        apply(_FOO, _foos()),
    ),
    scenario(
        "apply a scale",
        apply(_FOO, _foos()),
        apply(
            f"{_FOO}/scale",
            {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one"}, "spec": {"replicas": 4}},
        ),
        gap=gaps.SCALE,
    ),
)


def _template(**more: Any) -> Any:
    container = {"name": "web", "image": "nginx", **more}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return deployment("web", None, template=template)


_WEB = f"{DEPLOYMENTS}/web"
_MORE = {
    "ports": [{"containerPort": 80}],
    "env": [{"name": "A", "value": "b"}],
    "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
}
_DEPLOYMENTS = (
    scenario("apply a Deployment", apply(_WEB, deployment("web")), apply(_WEB, deployment("web")), played=True),
    scenario(
        "apply more of a Deployment",
        apply(_WEB, deployment("web")),
        apply(_WEB, _template(**_MORE)),
        apply(_WEB, _template()),
        played=True,
    ),
    scenario(
        "apply no replicas any more",
        apply(_WEB, deployment("web", 0)),
        apply(_WEB, deployment("web", None)),
        played=True,
    ),
    scenario(
        "apply over a created Deployment",
        post(DEPLOYMENTS, deployment("web")),
        apply(_WEB, deployment("web")),
        apply(_WEB, _template(image="nginx:2")),
        forced(_WEB, _template(image="nginx:2")),
        played=True,
    ),
    scenario(
        "apply two containers",
        apply(_WEB, deployment("web")),
        apply(
            _WEB,
            {
                **deployment("web", None),
                "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "x"}]}}},
            },
            "you",
        ),
        apply(_WEB, deployment("web", 0)),
        played=True,
    ),
    scenario(
        "apply a broken Deployment", apply(_WEB, deployment("web", -1)), apply(_WEB, {**deployment("web"), "spec": {}})
    ),
)

SCENARIOS = (*_MAPS, *_FOOS, *_DEPLOYMENTS)
