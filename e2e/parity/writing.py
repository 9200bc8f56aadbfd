"""create, replace and patch: names, paths, versions, dry runs, patches of three kinds, /status and /scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from e2e.parity import gaps
from e2e.parity.asks import (
    CRDS,
    DEPLOYMENTS,
    FOOS,
    JSON,
    JSON_PATCH,
    MAPS,
    STRATEGIC,
    Ask,
    config_map,
    deployment,
    foo,
    get,
    patch,
    post,
    put,
    scenario,
)

_ONE = post(MAPS, config_map("one", {"a": "1"}, labels={"x": "y"}))
_FOO = post(FOOS, foo("one", {"name": "a"}))
_UID = "11111111-1111-4111-8111-111111111111"
_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1", "controller": True}

_METADATA: dict[str, dict[str, Any]] = {
    "no name": {},
    "an upper-case name": {"name": "Upper"},
    "a long name": {"name": "x" * 254},
    "a bad label": {"name": "one", "labels": {"a": "-x"}},
    "a long label": {"name": "one", "labels": {"a": "x" * 64}},
    "a bad key of a label": {"name": "one", "labels": {"a b": "x"}},
    "a long key of a label": {"name": "one", "labels": {"a" * 64: "x"}},
    "a bad prefix of a label": {"name": "one", "labels": {"A_/b": "x"}},
    "an empty key of a label": {"name": "one", "labels": {"": "x"}},
    "a number as a label": {"name": "one", "labels": {"a": 7}},
    "a number as an annotation": {"name": "one", "annotations": {"a": 7}},
    "a bad key of an annotation": {"name": "one", "annotations": {"a b": "x"}},
    "a bad finalizer": {"name": "one", "finalizers": ["a b"]},
    "an owner without a UID": {"name": "one", "ownerReferences": [{**_OWNER, "uid": ""}]},
    "an owner without a kind": {"name": "one", "ownerReferences": [{"name": "a", "uid": "1"}]},
    "two controllers": {"name": "one", "ownerReferences": [_OWNER, {**_OWNER, "uid": "2"}]},
    "a version": {"name": "one", "resourceVersion": "5"},
    "a UID": {"name": "one", "uid": _UID},
    "what the server writes": {"name": "one", "generation": 7, "creationTimestamp": "2020-01-01T00:00:00Z"},
    "a deletion time": {"name": "one", "deletionTimestamp": "2020-01-01T00:00:00Z"},
    "empty maps": {"name": "one", "labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []},
    "nulls": {"name": "one", "labels": None, "finalizers": None},
    "a finalizer without a domain": {"name": "one", "finalizers": ["hold"]},
    "a standard finalizer": {"name": "one", "finalizers": ["foregroundDeletion"]},
}
_NOT_THERE = {"a": "b", "c": None}
_JSON_PATCHES: dict[str, Any] = {
    "test and add": [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "add", "path": "/data/b", "value": "2"}],
    "a failed test": [{"op": "test", "path": "/data/a", "value": "2"}],
    "test of nothing": [{"op": "test", "path": "/data/z", "value": "2"}],
    "remove": [{"op": "remove", "path": "/data/a"}],
    "remove nothing": [{"op": "remove", "path": "/data/z"}],
    "add below nothing": [{"op": "add", "path": "/spec/z", "value": "1"}],
    "move and copy": [
        {"op": "move", "from": "/data/a", "path": "/data/b"},
        {"op": "copy", "from": "/data/b", "path": "/data/c"},
    ],
    "no such operation": [{"op": "turn", "path": "/data/a"}],
    "no list": {"op": "remove", "path": "/data/a"},
    "into a finalizer list": [
        {"op": "add", "path": "/metadata/finalizers", "value": ["a.example.com/x"]},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "a.example.com/y"},
    ],
}
_STRATEGIC: dict[str, Any] = {
    "a container by its name": {"containers": [{"name": "web", "image": "nginx:2"}]},
    "one more container": {"containers": [{"name": "side", "image": "busybox"}]},
    "an environment": {"containers": [{"name": "web", "env": [{"name": "A", "value": "b"}]}]},
    "no container": {"containers": [{"name": "web", "$patch": "delete"}]},
    "all replaced": {"containers": [{"$patch": "replace"}, {"name": "new", "image": "nginx:3"}]},
    "a selector of nodes": {"nodeSelector": {"a": "b"}},
    "a null": {"dnsPolicy": None, "nodeSelector": None},
}


def _template(spec: Any) -> Any:
    return {"spec": {"template": {"spec": spec}}}


def _changed(name: str, body: Any, path: str = f"{MAPS}/one", **query: str) -> Any:
    return scenario(name, _ONE, patch(path, body, **query))


_CREATES = (
    scenario("create", _ONE),
    scenario("create without its type", post(MAPS, {"metadata": {"name": "one"}})),
    scenario("create a Foo without its type", post(FOOS, {"metadata": {"name": "one"}})),
    scenario("create twice", _ONE, _ONE, _FOO, _FOO),
    scenario("create another kind", post(MAPS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}})),
    scenario(
        "create another version", post(MAPS, {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "one"}})
    ),
    scenario("create in another namespace", post(MAPS, config_map("one", namespace="far"))),
    scenario(
        "create in no namespace",
        post("/api/v1/configmaps", config_map("one")),
        post("/api/v1/namespaces/nowhere/configmaps", config_map("one")),
    ),
    scenario(
        "create with a generated name",
        post(MAPS, {"metadata": {"generateName": "gen-"}}),
        post(FOOS, {**foo("", {"name": "a"}), "metadata": {"generateName": "gen-"}}),
    ),
    scenario("create with both names", post(MAPS, {"metadata": {"generateName": "gen-", "name": "one"}})),
    scenario("create nothing", post(MAPS, None)),
    scenario("create no object", post(MAPS, [1])),
    scenario("create a text", Ask(method="POST", path=MAPS, body=config_map("one"), media="text/plain")),
    scenario("a null in a map", post(MAPS, {"metadata": {"name": "one", "annotations": {"a": None}}})),
    *(scenario(f"create with {what}", post(MAPS, {"metadata": meta})) for what, meta in _METADATA.items()),
    *(
        scenario(f"create a Foo with {what}", post(FOOS, {**foo("", {"name": "a"}), "metadata": meta}))
        for what, meta in _METADATA.items()
    ),
    scenario("dry create", post(MAPS, config_map("one"), dryRun="All"), get(f"{MAPS}/one")),
    scenario("dry create of what is there", _ONE, post(MAPS, config_map("one"), dryRun="All")),
    scenario(
        "dry in an unknown way",
        post(MAPS, config_map("one"), dryRun="Some"),
        put(f"{MAPS}/one", config_map("one"), dryRun="Some"),
    ),
    scenario("a manager of fields", post(MAPS, config_map("one", {"a": "1"}), fieldManager="me")),
    scenario("a manager with a long name", post(MAPS, config_map("one"), fieldManager="m" * 129)),
    scenario("managed fields of one's own", post(MAPS, config_map("one", managedFields=[{"manager": "x"}]))),
)
_REPLACES = (
    scenario("replace", _ONE, put(f"{MAPS}/one", config_map("one", {"b": "2"})), get(f"{MAPS}/one")),
    scenario("replace by the same", _ONE, put(f"{MAPS}/one", config_map("one", {"a": "1"}, labels={"x": "y"}))),
    scenario(
        "replace a version", _ONE, put(f"{MAPS}/one", config_map("one", resourceVersion="$0.metadata.resourceVersion"))
    ),
    scenario("replace an old version", _ONE, put(f"{MAPS}/one", config_map("one", resourceVersion="1"))),
    scenario("replace no version", _ONE, put(f"{MAPS}/one", config_map("one", resourceVersion="x"))),
    scenario("replace another UID", _ONE, put(f"{MAPS}/one", config_map("one", uid=_UID))),
    scenario(
        "replace what is not there",
        put(f"{MAPS}/one", config_map("one")),
        put(f"{MAPS}/one", config_map("one", uid=_UID)),
    ),
    scenario(
        "replace under another name",
        _ONE,
        put(f"{MAPS}/one", config_map("two")),
        put(f"{MAPS}/one", {"metadata": {}}),
        put(f"{FOOS}/one", {**foo(""), "metadata": {}}),
    ),
    scenario("replace in another namespace", _ONE, put(f"{MAPS}/one", config_map("one", namespace="far"))),
    scenario(
        "replace a Foo",
        _FOO,
        put(f"{FOOS}/one", foo("one", {"name": "b"}, resourceVersion="$0.metadata.resourceVersion")),
    ),
    scenario("replace a Foo without a version", _FOO, put(f"{FOOS}/one", foo("one", {"name": "b"}))),
    scenario("replace dry", _ONE, put(f"{MAPS}/one", config_map("one", {"b": "2"}), dryRun="All"), get(f"{MAPS}/one")),
    scenario(
        "replace the status with the rest",
        _FOO,
        put(
            f"{FOOS}/one",
            {**foo("one", {"name": "a"}, resourceVersion="$0.metadata.resourceVersion"), "status": {"replicas": 3}},
        ),
    ),
)
_PATCHES = (
    _changed("merge", {"data": {"b": "2"}, "metadata": {"labels": {"x": None, "z": "1"}}}),
    _changed("merge nothing", {}),
    _changed("merge the same", {"data": {"a": "1"}}),
    _changed("merge nulls", {"data": _NOT_THERE, "metadata": {"annotations": {"a": None}, "labels": None}}),
    _changed("merge data away", {"data": None}),
    _changed("merge dry", {"data": {"b": "2"}}, dryRun="All"),
    _changed("merge a UID", {"metadata": {"uid": _UID}}),
    _changed("merge an old version", {"metadata": {"resourceVersion": "1"}}),
    _changed("merge the version", {"metadata": {"resourceVersion": "$0.metadata.resourceVersion"}, "data": {"b": "2"}}),
    _changed("merge a name", {"metadata": {"name": "two"}}),
    scenario(
        "merge a number",
        _ONE,
        patch(f"{MAPS}/one", {"data": {"a": 7}}),
        gap=gaps.PATCH,
    ),
    scenario(
        "JSON patch: replace nothing",
        _ONE,
        patch(f"{MAPS}/one", [{"op": "replace", "path": "/data/z", "value": "1"}], JSON_PATCH),
    ),
    _changed("merge a list", [1]),
    _changed("merge into nothing", {}, f"{MAPS}/none"),
    _changed("merge an owner", {"metadata": {"ownerReferences": [_OWNER]}}),
    _changed("merge managed fields away", {"metadata": {"managedFields": [{}]}}),
    _changed("merge no managed fields", {"metadata": {"managedFields": []}}),
    scenario(
        "merge no managed fields of a Foo",
        _FOO,
        patch(f"{FOOS}/one", {"metadata": {"managedFields": []}}),
        patch(f"{FOOS}/one", {"metadata": {"managedFields": [{}]}}),
    ),
    _changed("merge a null for managed fields", {"metadata": {"managedFields": None}}),
    scenario(
        "merge after managed fields went",
        _ONE,
        patch(f"{MAPS}/one", {"metadata": {"managedFields": [{}]}}),
        patch(f"{MAPS}/one", {"data": {"b": "2"}}),
    ),
    scenario("an unknown kind of patch", _ONE, patch(f"{MAPS}/one", {}, JSON), patch(f"{FOOS}/one", {}, JSON)),
    *(
        scenario(f"JSON patch: {name}", _ONE, patch(f"{MAPS}/one", body, JSON_PATCH))
        for name, body in _JSON_PATCHES.items()
    ),
    *(
        scenario(f"JSON patch of a Foo: {name}", _FOO, patch(f"{FOOS}/one", body, JSON_PATCH))
        for name, body in list(_JSON_PATCHES.items())[1:]
    ),
    *(
        scenario(
            f"strategic merge: {name}",
            post(DEPLOYMENTS, deployment("web")),
            patch(f"{DEPLOYMENTS}/web", _template(body), STRATEGIC),
            played=True,
        )
        for name, body in _STRATEGIC.items()
    ),
    scenario(
        "strategic merge of metadata",
        _ONE,
        patch(f"{MAPS}/one", {"metadata": {"finalizers": ["a.example.com/x"]}}, STRATEGIC),
        patch(f"{MAPS}/one", {"metadata": {"finalizers": ["a.example.com/y"]}}, STRATEGIC),
        patch(f"{MAPS}/one", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.example.com/x"]}}, STRATEGIC),
    ),
    scenario(
        "strategic merge of owners",
        _ONE,
        patch(
            f"{MAPS}/one",
            {"metadata": {"ownerReferences": [{**_OWNER, "name": "one", "uid": "$0.metadata.uid"}]}},
            STRATEGIC,
        ),
        patch(
            f"{MAPS}/one",
            {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "$0.metadata.uid"}]}},
            STRATEGIC,
        ),
    ),
    scenario(
        "strategic merge in an order",
        post(DEPLOYMENTS, deployment("web")),
        patch(
            f"{DEPLOYMENTS}/web",
            _template(
                {
                    "$setElementOrder/containers": [{"name": "web"}, {"name": "side"}],
                    "containers": [{"name": "side", "image": "x"}],
                }
            ),
            STRATEGIC,
        ),
        played=True,
    ),
    scenario(
        "a strategy by strategic merge",
        post(DEPLOYMENTS, deployment("web")),
        patch(f"{DEPLOYMENTS}/web", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}, STRATEGIC),
        played=True,
    ),
    scenario(
        "labels of a namespace",
        patch("/api/v1/namespaces/{ns}", {"metadata": {"labels": {"a": "b"}}}),
        patch("/api/v1/namespaces/{ns}", {"spec": {"finalizers": []}}),
    ),
    scenario(
        "more managers than ten",
        replace(_ONE, query={"fieldManager": "m"}),  # the order of names is that of times
        *(patch(f"{MAPS}/one", {"data": {str(place): ""}}, fieldManager=f"m{place:02}") for place in range(12)),
    ),
    scenario("strategic merge of a Foo", _FOO, patch(f"{FOOS}/one", {}, STRATEGIC)),
    scenario(
        "who changed what",
        _ONE,
        patch(f"{MAPS}/one", {"data": {"b": "2"}}, fieldManager="a"),
        patch(f"{MAPS}/one", {"data": {"b": "3"}}, fieldManager="b"),
        patch(f"{MAPS}/one", {"data": {"a": None}}, fieldManager="b"),
    ),
)
_SUBRESOURCES = (
    scenario(
        "a status",
        _FOO,
        patch(
            f"{FOOS}/one/status", {"status": {"replicas": 1}, "spec": {"name": "z"}, "metadata": {"labels": {"a": "b"}}}
        ),
        get(f"{FOOS}/one"),
    ),
    scenario("a status by the wrong door", _FOO, patch(f"{FOOS}/one", {"status": {"replicas": 1}})),
    scenario(
        "a status that is put",
        _FOO,
        put(
            f"{FOOS}/one/status",
            {**foo("one", {"name": "z"}, resourceVersion="$0.metadata.resourceVersion"), "status": {"replicas": 2}},
        ),
    ),
    scenario("a status at its creation", post(FOOS, {**foo("one", {"name": "a"}), "status": {"replicas": 1}})),
    scenario(
        "a status with an old version",
        _FOO,
        patch(f"{FOOS}/one/status", {"metadata": {"resourceVersion": "1"}, "status": {"replicas": 1}}),
    ),
    scenario(
        "a status of the wrong type",
        _FOO,
        patch(f"{FOOS}/one/status", {"status": {"conditions": [{"type": 1}]}}),
        gap=gaps.CUSTOM_TYPES,
    ),
    scenario(
        "a status of nothing", patch(f"{FOOS}/one/status", {"status": {"replicas": 1}}), get(f"{FOOS}/one/status")
    ),
    scenario("a status that is read", _FOO, get(f"{FOOS}/one/status")),
    scenario(
        "a status, then the spec",
        _FOO,
        patch(f"{FOOS}/one/status", {"status": {"conditions": [{"type": "A", "status": "True"}]}}, fieldManager="s"),
        patch(f"{FOOS}/one", {"spec": {"name": "b"}}, fieldManager="m"),
    ),
    scenario(
        "finalizers through /status",
        _FOO,
        patch(f"{FOOS}/one/status", {"metadata": {"finalizers": ["a.example.com/x"]}}),
    ),
    scenario(
        "a scale",
        _FOO,
        get(f"{FOOS}/one/scale"),
        patch(f"{FOOS}/one/scale", {"spec": {"replicas": 5}}),
        get(f"{FOOS}/one"),
    ),
    scenario(
        "a scale that is put",
        _FOO,
        put(
            f"{FOOS}/one/scale",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "one", "namespace": "{ns}"},
                "spec": {"replicas": 3},
            },
        ),
        get(f"{FOOS}/one"),
    ),
    scenario(
        "a scale with an old version",
        _FOO,
        put(f"{FOOS}/one/scale", {"metadata": {"name": "one", "resourceVersion": "1"}, "spec": {"replicas": 3}}),
    ),
    scenario("a scale below zero", _FOO, patch(f"{FOOS}/one/scale", {"spec": {"replicas": -1}})),
    scenario("a scale beyond the schema", _FOO, patch(f"{FOOS}/one/scale", {"spec": {"replicas": 50}})),
    scenario(
        "a scale with a selector",
        _FOO,
        patch(f"{FOOS}/one/status", {"status": {"replicas": 4, "selector": "app=one"}}),
        get(f"{FOOS}/one/scale"),
    ),
    scenario("a scale of nothing", get(f"{FOOS}/one/scale"), patch(f"{FOOS}/one/scale", {"spec": {"replicas": 1}})),
    scenario(
        "the scale of a Deployment",
        post(DEPLOYMENTS, deployment("web", paused=True)),
        patch(f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 1}}),
        get(f"{DEPLOYMENTS}/web"),
        played=True,
    ),
    scenario(
        "dry scale", _FOO, patch(f"{FOOS}/one/scale", {"spec": {"replicas": 5}}, dryRun="All"), get(f"{FOOS}/one")
    ),
    scenario("the status of a CRD that is not there", patch(f"{CRDS}/none.example.com/status", {})),
)

SCENARIOS = (*_CREATES, *_REPLACES, *_PATCHES, *_SUBRESOURCES)
