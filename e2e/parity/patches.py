"""Strategic merge patches with directives, JSON patches and merge patches at their edges."""

from __future__ import annotations

from typing import Any

from e2e.parity.asks import (
    DEPLOYMENTS,
    FOOS,
    JSON_PATCH,
    MAPS,
    MERGE,
    STRATEGIC,
    Scenario,
    config_map,
    deployment,
    foo,
    get,
    patch,
    post,
    scenario,
)

_CONTAINERS = [
    {"name": "web", "image": "a", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
    {"name": "side", "image": "b", "command": ["x", "y"]},
    {"name": "last", "image": "c"},
]
_VOLUMES = [{"name": "one", "emptyDir": {}}, {"name": "two", "nfs": {"server": "s", "path": "/p"}}]
_META = {"labels": {"a": "1", "b": "2"}, "finalizers": ["x.example.com/a", "x.example.com/b"]}
_TEMPLATE = {"metadata": {"labels": {"app": "one"}}, "spec": {"containers": _CONTAINERS, "volumes": _VOLUMES}}
_ORDER = "$setElementOrder/containers"


def _containers(*items: Any, **directives: Any) -> dict[str, Any]:
    return _inside(containers=list(items), **directives)


def _inside(**spec: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": spec}}}


def _names(*names: str) -> dict[str, Any]:
    return {_ORDER: [{"name": name} for name in names]}


_NEW = {"name": "new", "image": "n"}
_DEPLOYMENT: dict[str, Any] = {
    "a new container": _containers(_NEW),
    "a changed container": _containers({"name": "side", "image": "n"}),
    "two containers in another order": _containers({"name": "last"}, {"name": "web"}),
    "a null inside": _containers({"name": "side", "command": None}),
    "a replaced list": _containers({"$patch": "replace"}, _NEW),
    "a deleted container": _containers({"name": "side", "$patch": "delete"}),
    "a missing deleted container": _containers({"name": "odd", "$patch": "delete"}),
    "a deletion without its name": _containers({"$patch": "delete"}),
    "an odd directive in a list": _containers({"name": "web", "$patch": "odd"}),
    "a merge directive in a list": _containers({"name": "web", "$patch": "merge"}),
    "a container without a name": _containers({"image": "n"}),
    "an order": _inside(**_names("last", "side", "web")),
    "an order with a new container": _containers(_NEW, **_names("new", "last", "side", "web")),
    "an order with a changed container": _containers({"name": "web", "image": "n"}, **_names("side", "web")),
    "an order of one": _inside(**_names("last")),
    "an order with an unknown name": _inside(**_names("odd", "last")),
    "an empty order": _containers(_NEW, **_names()),
    "an order that the list contradicts": _containers(_NEW, {"name": "web"}, **_names("web", "new")),
    "an order without the list's item": _containers(_NEW, **_names("web")),
    "an order and a deletion": _containers({"name": "side", "$patch": "delete"}, **_names("last", "web")),
    "an order that is a text": _inside(**{_ORDER: "web"}),
    "an order of texts": _inside(**{_ORDER: ["web", "last"]}),
    "an order without names": _inside(**{_ORDER: [{"image": "x"}]}),
    "a volume of another kind": _inside(volumes=[{"name": "two", "emptyDir": {}, "$retainKeys": ["name", "emptyDir"]}]),
    "retained keys without the new one": _inside(volumes=[{"name": "two", "emptyDir": {}, "$retainKeys": ["name"]}]),
    "retained keys that are a text": _inside(volumes=[{"name": "two", "$retainKeys": "name"}]),
    "another strategy": {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
    "a replaced map": {"spec": {"template": {"metadata": {"labels": {"$patch": "replace", "app": "one"}}}}},
    "an odd directive": {"spec": {"strategy": {"$patch": "odd"}}},
    "a deleted map": {"spec": {"strategy": {"$patch": "delete"}}},
    "a list of maps that has a text": _containers("web"),
    "nested lists that merge": _containers({"name": "web", "env": [{"name": "B", "value": "3"}, {"name": "C"}]}),
    "a nested order": _containers(
        {"name": "web", "env": [{"name": "C"}], "$setElementOrder/env": [{"name": "C"}, {"name": "A"}]}
    ),
    "an atomic list": _containers({"name": "side", "command": ["z"]}),
    "new ports": _containers({"name": "web", "ports": [{"containerPort": 80}, {"containerPort": 81, "$patch": "x"}]}),
}
_META_PATCHES: dict[str, Any] = {
    "a new finalizer": {"metadata": {"finalizers": ["x.example.com/c"]}},
    "a repeated finalizer": {"metadata": {"finalizers": ["x.example.com/b"]}},
    "deleted finalizers": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.example.com/a", "odd"]}},
    "a deletion from a missing list": {"metadata": {"$deleteFromPrimitiveList/odd": ["a"]}},
    "a deletion that is a text": {"metadata": {"$deleteFromPrimitiveList/finalizers": "x"}},
    "a deletion that is null": {"metadata": {"$deleteFromPrimitiveList/finalizers": None}},
    "an order of finalizers": {"metadata": {"$setElementOrder/finalizers": ["x.example.com/b", "x.example.com/a"]}},
    "an order and a new finalizer": {
        "metadata": {
            "finalizers": ["x.example.com/c"],
            "$setElementOrder/finalizers": ["x.example.com/b", "x.example.com/c", "x.example.com/a"],
        }
    },
    "finalizers of two types": {"metadata": {"finalizers": [1]}},
    "replaced labels": {"metadata": {"labels": {"$patch": "replace", "c": "3"}}},
    "a new map with a directive": {"metadata": {"annotations": {"$patch": "replace", "a": "b"}}},
    "deleted labels": {"metadata": {"labels": {"$patch": "delete"}}},
    "a null label": {"metadata": {"labels": {"a": None, "c": None}}},
    "nothing": {},
    "owners": {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}]}},
}
_OPERATIONS: dict[str, Any] = {
    "add to an object": [{"op": "add", "path": "/data/c", "value": "3"}],
    "add to a missing parent": [{"op": "add", "path": "/odd/c", "value": "3"}],
    "add without a value": [{"op": "add", "path": "/data/c"}],
    "add without a slash": [{"op": "add", "path": "data", "value": "3"}],
    "add with words before the slash": [{"op": "add", "path": "x/metadata/labels", "value": {"x": "y"}}],
    "add the whole": [{"op": "add", "path": "", "value": {}}],
    "replace a value": [{"op": "replace", "path": "/data/a", "value": "3"}],
    "replace a missing value": [{"op": "replace", "path": "/data/c", "value": "3"}],
    "replace the whole": [{"op": "replace", "path": "", "value": config_map("one", {"z": "1"})}],
    "replace the whole by a text": [{"op": "replace", "path": "", "value": "x"}],
    "remove a value": [{"op": "remove", "path": "/data/a"}],
    "remove a missing value": [{"op": "remove", "path": "/data/c"}],
    "remove from a text": [{"op": "remove", "path": "/data/a/b"}],
    "test a value": [{"op": "test", "path": "/data/a", "value": "1"}],
    "test another value": [{"op": "test", "path": "/data/a", "value": "2"}],
    "test a missing value": [{"op": "test", "path": "/data/c", "value": None}],
    "test a missing value without one": [{"op": "test", "path": "/data/c"}],
    "test an object": [{"op": "test", "path": "/data", "value": {"b": "2", "a": "1"}}],
    "test a value below a missing one": [{"op": "test", "path": "/odd/c", "value": None}],
    "copy a value": [{"op": "copy", "from": "/data/a", "path": "/data/c"}],
    "copy a missing value": [{"op": "copy", "from": "/data/odd", "path": "/data/c"}],
    "copy without a source": [{"op": "copy", "path": "/data/c"}],
    "move a value": [{"op": "move", "from": "/data/a", "path": "/data/c"}],
    "move a missing value": [{"op": "move", "from": "/data/odd", "path": "/data/c"}],
    "append to a list": [{"op": "add", "path": "/metadata/finalizers/-", "value": "x.example.com/c"}],
    "insert into a list": [{"op": "add", "path": "/metadata/finalizers/0", "value": "x.example.com/c"}],
    "insert behind a list": [{"op": "add", "path": "/metadata/finalizers/3", "value": "x.example.com/c"}],
    "insert from the end": [{"op": "add", "path": "/metadata/finalizers/-1", "value": "x.example.com/c"}],
    "replace from the end": [{"op": "replace", "path": "/metadata/finalizers/-1", "value": "x.example.com/c"}],
    "replace behind a list": [{"op": "replace", "path": "/metadata/finalizers/2", "value": "x.example.com/c"}],
    "remove with a plus": [{"op": "remove", "path": "/metadata/finalizers/+1"}],
    "remove with a zero": [{"op": "remove", "path": "/metadata/finalizers/01"}],
    "remove a dash": [{"op": "remove", "path": "/metadata/finalizers/-"}],
    "an escaped path": [{"op": "add", "path": "/metadata/annotations/a.b~1c", "value": "1"}],
    "an unknown operation": [{"op": "odd", "path": "/data/a"}],
    "an operation without a name": [{"path": "/data/a"}],
    "an operation that is a text": ["add"],
    "an object": {"op": "add"},
    "a text": "add",
    "no operation": [],
    "too many operations": [{"op": "test", "path": "/data/a", "value": "1"}] * 10_001,
}
_MAP_META = {"finalizers": ["x.example.com/a", "x.example.com/b"], "annotations": {"x": "y"}}
_MERGES: dict[str, Any] = {
    "nulls": {"data": {"a": None, "c": None}},
    "a null map": {"data": None},
    "nulls in a new map": {"binaryData": {"a": None}},
    "a list": [],
    "a text": "x",
    "another name": {"metadata": {"name": "two"}},
    "no metadata": {"metadata": None},
}
_FOO_PATCHES: dict[str, Any] = {
    "a merge patch with a null": ({"spec": {"mode": None, "maybe": None}}, MERGE),
    "a merge patch with nulls in a list": ({"spec": {"parts": [{"id": "x", "x": None}]}}, MERGE),
    "a JSON patch": ([{"op": "replace", "path": "/spec/name", "value": "b"}], JSON_PATCH),
    "a strategic merge patch": ({"spec": {"name": "b"}}, STRATEGIC),
    "no media type": ({"spec": {"name": "b"}}, "application/json"),
}

_ONE = {"spec": {"template": _TEMPLATE, "selector": {"matchLabels": {"app": "one"}}}}
_MAP = post(MAPS, config_map("one", {"a": "1"}, **_META))
_BEFORE = post(DEPLOYMENTS, {**deployment("one"), "spec": {"replicas": 0, **_ONE["spec"]}})
SCENARIOS: tuple[Scenario, ...] = (
    *(
        scenario(
            f"a strategic patch of a Deployment: {what}",
            _BEFORE,
            patch(f"{DEPLOYMENTS}/one", body, STRATEGIC),
            played=True,
        )
        for what, body in _DEPLOYMENT.items()
    ),
    *(
        scenario(f"a strategic patch of metadata: {what}", _MAP, patch(f"{MAPS}/one", body, STRATEGIC))
        for what, body in _META_PATCHES.items()
    ),
    *(
        scenario(
            f"a JSON patch: {what}",
            post(MAPS, config_map("one", {"a": "1", "b": "2"}, **_MAP_META)),
            patch(f"{MAPS}/one", body, JSON_PATCH),
            get(f"{MAPS}/one"),
        )
        for what, body in _OPERATIONS.items()
    ),
    *(
        scenario(
            f"a merge patch: {what}", post(MAPS, config_map("one", {"a": "1", "b": "2"})), patch(f"{MAPS}/one", body)
        )
        for what, body in _MERGES.items()
    ),
    *(
        scenario(f"a Foo gets {what}", post(FOOS, foo("one", {"name": "a"})), patch(f"{FOOS}/one", body, media))
        for what, (body, media) in _FOO_PATCHES.items()
    ),
)
