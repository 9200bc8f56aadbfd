"""Bodies in and out: media types, Tables, YAML, unreadable bodies, and fields that occur twice."""

from __future__ import annotations

from dataclasses import replace

from e2e.parity.asks import (
    APPLY,
    DEPLOYMENTS,
    EVENTS,
    FOOS,
    HPAS,
    JSON,
    LEASES,
    MAPS,
    MERGE,
    METADATA,
    METADATA_LIST,
    PODS,
    REPLICASETS,
    SECRETS,
    STATEFULSETS,
    Ask,
    config_map,
    delete,
    deployment,
    foo,
    get,
    lease,
    post,
    scenario,
    watch,
)

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_YAML = "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_ACCEPTED = {
    "nothing known": "text/plain",
    "a wildcard": "*/*",
    "half a wildcard": "application/*",
    "a worse form": "text/html;q=0.9,application/json;q=0.8",
    "unknown options": "application/json;foo=bar",
    "an unknown version of a Table": "application/json;as=Table;v=v9;g=meta.k8s.io",
    "an unknown form": "application/json;as=Chair;v=v1;g=meta.k8s.io",
    "a Table in protobuf": f"{_PROTOBUF};as=Table;v=v1;g=meta.k8s.io",
    "an older Table": "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
    "metadata": METADATA,
    "a list of metadata": METADATA_LIST,
}
_BROKEN = {
    "empty": b"",
    "an open object": b'{"a"',
    "a comma too many": b'{"a":1,}',
    "a list": b"[]",
    "a number": b"12",
    "text after it": b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}} x',
    "no quotes": b"{a:1}",
    "no colon": b'{"a" 1}',
    "no comma": b'{"a":[1 2]}',
    "a bad word": b'{"a":tru}',
    "a leading zero": b'{"a":01}',
    "a bad fraction": b'{"a":1.}',
    "a bad exponent": b'{"a":1e+}',
    "a bad escape": b'{"a":"\\x"}',
    "a control character": b'{"a":"\x01"}',
    "too deep": b'{"x":' + b"[" * 10001 + b"]" * 10001 + b"}",
    "a numeric version": b'{"apiVersion":1}',
}
_TWICE = b'{"metadata":{"name":"one","name":"one"},"data":{"a":"1","a":"2"},"immutable":true,"immutable":false}'
_FOO_TWICE = (
    b'{"apiVersion":"scenarios.example.com/v1","kind":"Foo","metadata":{"name":"one","odd":1,"odd":2},'
    b'"spec":{"name":"a","name":"b","parts":[{"id":"1"},{"id":"2","id":"3"}]}}'
)
_LINES = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata:\n  date: 2026-01-01\n  a: b\n  a: c\n"
_TYPES = {
    "ConfigMap": MAPS,
    "Deployment": DEPLOYMENTS,
    "Event": EVENTS,
    "HorizontalPodAutoscaler": HPAS,
    "Lease": LEASES,
    "Pod": PODS,
    "ReplicaSet": REPLICASETS,
    "Secret": SECRETS,
    "StatefulSet": STATEFULSETS,
}


def _raw(path: str, body: bytes, media: str = JSON, method: str = "POST", **query: str) -> Ask:
    return Ask(method=method, path=path, query=query, body=body, media=media)


def _as(ask: Ask, accept: str) -> Ask:
    return replace(ask, accept=accept)


SCENARIOS = (
    *(
        scenario(f"accept {name}", post(MAPS, config_map("one")), get(f"{MAPS}/one", accept=accept))
        for name, accept in _ACCEPTED.items()
        if "metadata" not in name
    ),
    *(
        scenario(
            f"accept {name}: Foo",
            post(FOOS, foo("one", {"name": "a"})),
            get(f"{FOOS}/one", accept=accept),
            get(FOOS, accept=accept),
        )
        for name, accept in _ACCEPTED.items()
    ),
    scenario("a watch in YAML", get(MAPS, accept=_YAML, watch="true", timeoutSeconds="1")),
    scenario("a list of metadata of one object", get("/api/v1/namespaces/{ns}", accept=METADATA_LIST)),
    *(
        scenario(f"an empty Table: {kind}", get(path, accept=_TABLE, labelSelector="x=y"))
        for kind, path in _TYPES.items()
    ),
    scenario("a Table of namespaces", get("/api/v1/namespaces/default", accept=_TABLE, includeObject="None")),
    scenario(
        "a Table of pages",
        *(post(MAPS, config_map(name, {"a": "1"}, labels={"t": "y"})) for name in "abc"),
        get(MAPS, accept=_TABLE, limit="2", labelSelector="t=y"),
    ),
    *(
        scenario(
            f"a Table with {include}",
            post(DEPLOYMENTS, deployment("one", 3)),
            get(DEPLOYMENTS, accept=_TABLE, includeObject=include),
            played=True,
        )
        for include in ("None", "Metadata", "All")
    ),
    scenario("a new object as a Table", _as(post(MAPS, config_map("one")), _TABLE), get(f"{MAPS}/none", accept=_TABLE)),
    scenario("a deletion as a Table", post(MAPS, config_map("one")), _as(delete(f"{MAPS}/one"), _TABLE)),
    scenario("a Table of Foos", post(FOOS, foo("one", {"name": "a"})), get(FOOS, accept=_TABLE)),
    scenario("a Table of Leases", post(LEASES, lease("one", "me")), get(f"{LEASES}/one", accept=_TABLE)),
    scenario(
        "a watch of Tables",
        post(FOOS, foo("a", {"name": "a"})),
        post(FOOS, foo("b", {"name": "b"})),
        watch(
            FOOS,
            "BOOKMARK",
            accept=_TABLE,
            allowWatchBookmarks="true",
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            includeObject="None",
        ),
    ),
    *(scenario(f"a body with {name}", _raw(MAPS, body)) for name, body in _BROKEN.items() if body),
    *(scenario(f"a body with {name}: Foo", _raw(FOOS, body)) for name, body in _BROKEN.items() if body),
    *(scenario(f"a body in {media}", _raw(MAPS, b"xx", media)) for media in ("text/html", _PROTOBUF)),
    scenario("a body in text: Foo", _raw(FOOS, b"xx", "text/html")),
    scenario("a body in YAML", _raw(MAPS, _LINES, _YAML), get(f"{MAPS}/one")),
    scenario("a strict body in YAML", _raw(MAPS, _LINES, _YAML, fieldValidation="Strict")),
    scenario("a broken body in YAML", _raw(MAPS, b"a: [\n", _YAML), _raw(MAPS, b"a: b: c\n", _YAML)),
    scenario("an apply in YAML", _raw(f"{MAPS}/one", _LINES, APPLY, "PATCH", fieldManager="me")),
    scenario("a broken apply", _raw(f"{MAPS}/one", b"{", APPLY, "PATCH", fieldManager="me")),
    *(
        scenario(f"a field that occurs twice: {how}", _raw(MAPS, _TWICE, fieldValidation=how))
        for how in ("Strict", "Warn", "Ignore")
    ),
    *(
        scenario(f"a field that occurs twice: Foo, {how}", _raw(FOOS, _FOO_TWICE, fieldValidation=how))
        for how in ("Strict", "Warn", "Ignore")
    ),
    scenario(
        "a field that occurs twice in a patch",
        post(MAPS, config_map("one", {"a": "1"})),
        _raw(f"{MAPS}/one", b'{"data":{"b":"1","b":"2"}}', MERGE, "PATCH"),
    ),
    scenario("broken options of a deletion", post(MAPS, config_map("one")), _raw(f"{MAPS}/one", b"{", JSON, "DELETE")),
    scenario(
        "options of a deletion as text",
        post(MAPS, config_map("one")),
        _raw(f"{MAPS}/one", b"{}", "text/html", "DELETE"),
    ),
)
