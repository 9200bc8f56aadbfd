"""The language of scenarios: a request, a watch, and short sequences of them.

A text may contain `{ns}`, the namespace of the scenario, and `$2.metadata.uid`, a value of its third response.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

MAPS = "/api/v1/namespaces/{ns}/configmaps"
SECRETS = "/api/v1/namespaces/{ns}/secrets"
ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
PODS = "/api/v1/namespaces/{ns}/pods"
SERVICES = "/api/v1/namespaces/{ns}/services"
EVENTS = "/api/v1/namespaces/{ns}/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
REPLICASETS = "/apis/apps/v1/namespaces/{ns}/replicasets"
STATEFULSETS = "/apis/apps/v1/namespaces/{ns}/statefulsets"
HPAS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# After samplecontroller.k8s.io in the alphabet: of two types with one name kubectl selects the first.
GROUP = "scenarios.example.com"
SHAPES = f"/apis/{GROUP}/v1/namespaces/{{ns}}/shapes"
EVENS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/evens"
FOOS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/foos"

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
ADMIN = "admin"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request; `until` makes it a watch, which is read up to the object of that name, or to its bookmark."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    media: str = JSON
    accept: str = JSON
    until: str = ""
    token: str = ADMIN  # of the administrator; a token of an earlier response; "" for none
    user: str = ""  # to impersonate
    groups: str = ""
    settled: bool = False  # the cluster's controllers have to act first: repeated until the responses are equal


@dataclass(frozen=True, slots=True)
class Scenario:
    """Requests in this order; `gap` is a known difference, of parity/gaps.py."""

    name: str
    asks: tuple[Ask, ...]
    gap: str = ""
    played: bool = False  # the cluster's controllers write to these objects: their versions and status are ignored
    guarded: bool = False  # needs the roles of a whole cluster


def scenario(name: str, *asks: Ask, gap: str = "", played: bool = False, guarded: bool = False) -> Scenario:
    return Scenario(name, asks, gap, played, guarded)


def get(path: str, *, accept: str = JSON, **query: str) -> Ask:
    return Ask(method="GET", path=path, query=query, accept=accept)


def post(path: str, body: Any, **query: str) -> Ask:
    return Ask(method="POST", path=path, query=query, body=body)


def put(path: str, body: Any, **query: str) -> Ask:
    return Ask(method="PUT", path=path, query=query, body=body)


def delete(path: str, body: Any = None, **query: str) -> Ask:
    return Ask(method="DELETE", path=path, query=query, body=body)


def patch(path: str, body: Any, media: str = MERGE, **query: str) -> Ask:
    return Ask(method="PATCH", path=path, query=query, body=body, media=media)


def apply(path: str, body: Any, manager: str = "me", **query: str) -> Ask:
    return patch(path, body, APPLY, fieldManager=manager, **query)


def forced(path: str, body: Any, manager: str = "me", **query: str) -> Ask:
    return apply(path, body, manager, force="true", **query)


def watch(path: str, until: str, *, accept: str = JSON, **query: str) -> Ask:
    """A watch; its response is a list of frames."""
    query = {"watch": "true", "timeoutSeconds": "20", **query}
    return Ask(method="GET", path=path, query=query, accept=accept, until=until)


def as_user(user: str, ask: Ask, *, groups: str = "") -> Ask:
    return replace(ask, user=user, groups=groups)


def with_token(token: str, ask: Ask) -> Ask:
    return replace(ask, token=token)


def settled(ask: Ask) -> Ask:
    return replace(ask, settled=True)


def config_map(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    content = {} if data is None else {"data": dict(data)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, **content}


def deployment(name: str, replicas: int | None = 0, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    count = {} if replicas is None else {"replicas": replicas}
    full = {**count, "selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": full}


def lease(name: str, holder: str, **metadata: Any) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    meta = {"name": name, **metadata}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


def foo(name: str, spec: Mapping[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    content = {} if spec is None else {"spec": dict(spec)}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Foo", "metadata": {"name": name, **metadata}, **content}


def keyed(key: str, **properties: Any) -> dict[str, Any]:
    items = {"type": "object", "required": [key], "properties": {key: {"type": "string"}, **properties}}
    merging = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    return {"type": "array", **merging, "items": items}


_TEXT = {"type": "string"}
_SPEC = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {**_TEXT, "pattern": "^[a-z]*$", "maxLength": 8},
        "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 2},
        "mode": {**_TEXT, "enum": ["fast", "slow"]},
        "port": {"x-kubernetes-int-or-string": True},
        "share": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1, "multipleOf": 0.25},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": _TEXT, "maxProperties": 2},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": _TEXT, "b": _TEXT}},
        "maybe": {**_TEXT, "nullable": True},
        "nested": {"type": "object", "default": {}, "properties": {"depth": {"type": "integer", "default": 1}}},
        "plain": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 2},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
        "parts": keyed("id", size={"type": "integer"}, x=_TEXT),
        "when": {**_TEXT, "format": "date-time"},
    },
}
_STATUS = {
    "type": "object",
    "properties": {"replicas": {"type": "integer"}, "selector": _TEXT, "conditions": keyed("type", status=_TEXT)},
}
_SCHEMA = {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}
_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def foo_crd(plural: str = "foos", kind: str = "Foo", group: str = GROUP) -> dict[str, Any]:
    """Two versions of one schema; only the first has subresources."""
    version = _version(_SCHEMA)
    scale = {**_SCALE, "labelSelectorPath": ".status.selector"}
    first = {
        **version,
        "subresources": {"status": {}, "scale": scale},
        "selectableFields": [{"jsonPath": ".spec.mode"}],
    }
    # The server merges equal schemas into one, which then has no selectable fields.
    other = {"openAPIV3Schema": {**_SCHEMA, "description": "The same in an older version."}}
    return _crd(plural, kind, group, first, {**version, "name": "v1beta1", "storage": False, "schema": other})


_FORMATS = (
    *("bsonobjectid", "byte", "cidr", "creditcard", "date", "date-time", "duration", "email", "hexcolor", "hostname"),
    *("ipv4", "ipv6", "isbn", "isbn10", "isbn13", "k8s-long-name", "k8s-short-name", "mac", "password", "rgbcolor"),
    *("ssn", "uri", "uuid", "uuid3", "uuid4", "uuid5", "odd"),
)
_INTEGER = {"type": "integer"}
_SHAPE = {
    **{name.replace("-", "_"): {**_TEXT, "format": name} for name in _FORMATS},
    "int32": {**_INTEGER, "format": "int32"},
    "int64": {**_INTEGER, "format": "int64"},
    "float": {"type": "number", "format": "float"},
    "any": {**_TEXT, "anyOf": [{"minLength": 3}, {"pattern": "^a"}]},
    "one": {**_TEXT, "oneOf": [{"minLength": 3}, {"pattern": "^a"}]},
    "all": {**_TEXT, "allOf": [{"minLength": 3}, {"pattern": "^a"}]},
    "not": {**_TEXT, "not": {"pattern": "^a"}},
    "either": {
        "type": "object",
        "properties": {"a": _TEXT, "b": _TEXT},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    },
    "amount": {"x-kubernetes-int-or-string": True, "anyOf": [_INTEGER, _TEXT], "pattern": "^[0-9]+%$", "maximum": 5},
    "few": {"type": "object", "additionalProperties": _INTEGER, "minProperties": 1, "maxProperties": 2},
    "inner": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    "number": {"type": "integer", "enum": [1, 2]},
    "pairs": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {
            "type": "object",
            "required": ["a"],
            "properties": {"a": _TEXT, "b": {**_TEXT, "default": "x"}, "c": _INTEGER},
        },
    },
    "open": {
        "type": "object",
        "minimum": 3,
        "exclusiveMaximum": True,
        "properties": {"low": {"type": "number", "maximum": 1.5, "exclusiveMaximum": True}},
    },
    "maybe": {"type": "object", "nullable": True, "properties": {"a": {**_INTEGER, "nullable": True, "default": 3}}},
    "texts": {"type": "array", "items": {**_TEXT, "nullable": True}},
    "words": {**_TEXT, "pattern": r"^(\pL+\s?)+$"},
}


def shape_crd() -> dict[str, Any]:
    """A type with a field for each kind of check."""
    spec = {"type": "object", "properties": _SHAPE}
    return _crd("shapes", "Shape", GROUP, _version({"type": "object", "properties": {"spec": spec}}))


def shape(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Shape", "metadata": {"name": name}, "spec": spec}


def even_crd() -> dict[str, Any]:
    """A type with one CEL rule, in its own type because such a rule adds to the messages of other errors."""
    rule = {"rule": "self % 2 == 0", "message": "is odd"}
    number = {"type": "integer", "x-kubernetes-validations": [rule]}
    return _crd("evens", "Even", GROUP, _version({"type": "object", "properties": {"number": number}}))


def _version(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}


def _crd(plural: str, kind: str, group: str, *versions: Mapping[str, Any]) -> dict[str, Any]:
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions)}
    meta = {"name": f"{plural}.{group}"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}
