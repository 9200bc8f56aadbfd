"""CustomResourceDefinitions: the checks of the definition itself, and of values by all parts of a schema."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from e2e.parity.asks import (
    CRDS,
    GROUP,
    SHAPES,
    Scenario,
    get,
    patch,
    post,
    scenario,
    shape,
)

_TEXT = {"type": "string"}
_ITEM = {"type": "object", "required": ["a"], "properties": {"a": _TEXT}}
_KEYED = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": _ITEM}


def _crd(schema: Any = None, **version: Any) -> dict[str, Any]:
    whole = {"type": "object", "properties": {"spec": {"type": "object"}}} if schema is None else schema
    one = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}, **version}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "things.example.com", "scope": "Namespaced", "names": names, "versions": [one]}
    meta = {"name": "things.things.example.com"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}


def _field(**schema: Any) -> dict[str, Any]:
    """A definition with one field of this schema."""
    return _crd({"type": "object", "properties": {"x": schema}})


def _with(path: str, value: Any) -> dict[str, Any]:
    """A definition with one part of its spec changed."""
    crd = deepcopy(_crd())
    *parts, last = path.split(".")
    here: Any = crd["spec"]
    for part in parts:
        here = here[int(part)] if part.isdecimal() else here[part]
    here[last] = value
    return crd


def _versions(*versions: dict[str, Any]) -> dict[str, Any]:
    crd = _crd()
    crd["spec"]["versions"] = [{**crd["spec"]["versions"][0], **version} for version in versions]
    return crd


_COLUMN = {"name": "A", "type": "string", "jsonPath": ".spec.a"}
_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
_OLD_NAME = {**_crd(), "metadata": {"name": "odd.example.com"}}
_DEFINITIONS: dict[str, Any] = {
    "another name": _OLD_NAME,
    "an odd scope": _with("scope", "Odd"),
    "no scope": _with("scope", ""),
    "an odd kind": _with("names.kind", "a_b"),
    "the kind of the list as its kind": _with("names.listKind", "Thing"),
    "an odd singular": _with("names.singular", "A"),
    "an odd short name": _with("names.shortNames", ["ok", "Not_ok"]),
    "an odd category": _with("names.categories", ["-"]),
    "an odd version": _with("versions.0.name", "V1"),
    "no storage version": _with("versions.0.storage", False),
    "a preserved unknown": _with("preserveUnknownFields", True),
    "no schema": _with("versions.0.schema", None),
    "an odd conversion": _with("conversion", {"strategy": "Odd"}),
    "a webhook without a client": _with("conversion", {"strategy": "Webhook"}),
    "a client without a webhook": _with(
        "conversion", {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}
    ),
    "a warning without deprecation": _crd(deprecationWarning="old"),
    "an empty warning": _crd(deprecated=True, deprecationWarning=""),
    "a column without a name": _crd(additionalPrinterColumns=[{**_COLUMN, "name": ""}]),
    "a column of an odd type": _crd(additionalPrinterColumns=[{**_COLUMN, "type": "odd"}]),
    "a column of an odd format": _crd(additionalPrinterColumns=[{**_COLUMN, "format": "odd"}]),
    "a column without a dot": _crd(additionalPrinterColumns=[{**_COLUMN, "jsonPath": "spec.a"}]),
    "a column without a path": _crd(additionalPrinterColumns=[{**_COLUMN, "jsonPath": ""}]),
    "scale without paths": _crd(subresources={"scale": {}}),
    "scale outside the spec": _crd(subresources={"scale": {**_SCALE, "specReplicasPath": ".status.x"}}),
    "scale outside the status": _crd(subresources={"scale": {**_SCALE, "statusReplicasPath": ".spec.x"}}),
    "scale without a dot": _crd(subresources={"scale": {**_SCALE, "specReplicasPath": "spec.x"}}),
    "a selector outside both": _crd(subresources={"scale": {**_SCALE, "labelSelectorPath": ".metadata.x"}}),
    "a selectable field of metadata": _crd(selectableFields=[{"jsonPath": ".metadata.name"}]),
    "a selectable field that is missing": _crd(selectableFields=[{"jsonPath": ".spec.odd"}]),
    "a selectable object": _crd(selectableFields=[{"jsonPath": ".spec"}]),
    "a selectable field twice": _crd(
        {"type": "object", "properties": {"x": _TEXT}}, selectableFields=[{"jsonPath": ".x"}, {"jsonPath": ".x"}]
    ),
    "a root of another type": _crd({"type": "string"}),
    "a root without a type": _crd({"properties": {"x": _TEXT}}),
    "a nullable root": _crd({"type": "object", "nullable": True}),
    "more properties at the root": _crd({"type": "object", "additionalProperties": _TEXT}),
    "metadata with labels": _crd(
        {"type": "object", "properties": {"metadata": {"type": "object", "required": ["name"]}}}
    ),
    "a default in metadata": _crd(
        {
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"name": {**_TEXT, "default": "x"}}}},
        }
    ),
    "a kind that is a number": _crd({"type": "object", "properties": {"kind": {"type": "integer"}}}),
    "a field without a type": _field(description="x"),
    "an item without a type": _field(type="array", items={"description": "x"}),
    "a list without items": _field(type="array"),
    "a field of an odd type": _field(type="odd"),
    "a null type": _field(type="null"),
    "unique items": _field(type="array", items=_TEXT, uniqueItems=True),
    "properties and more properties": _field(type="object", properties={"a": _TEXT}, additionalProperties=_TEXT),
    "an id": _field(type="string", id="x"),
    "a reference": _field(type="string", **{"$ref": "x"}),
    "pattern properties": _field(type="object", patternProperties={"a": _TEXT}),
    "dependencies": _field(type="object", dependencies={"a": ["b"]}),
    "definitions": _field(type="object", definitions={"a": _TEXT}),
    "an invalid pattern": _field(type="string", pattern="[a"),
    "a pattern that looks ahead": _field(type="string", pattern="(?=a)b"),
    "a repeated repetition": _field(type="string", pattern="a**"),
    "a type inside anyOf": _field(type="string", anyOf=[{"type": "string"}]),
    "a default inside oneOf": _field(type="string", oneOf=[{"default": "a"}]),
    "a description inside allOf": _field(type="string", allOf=[{"description": "a"}]),
    "a nullable inside not": _field(**{"type": "string", "not": {"nullable": True}}),
    "a property only inside anyOf": _crd({"type": "object", "anyOf": [{"properties": {"a": {"minLength": 1}}}]}),
    "a property only inside not": _crd({"type": "object", "not": {"properties": {"a": {"minLength": 1}}}}),
    "more properties inside anyOf": _field(type="object", anyOf=[{"additionalProperties": {"minLength": 1}}]),
    "unknown fields not preserved": _field(type="object", **{"x-kubernetes-preserve-unknown-fields": False}),
    "an integer or string with unknown fields": _field(
        **{"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}
    ),
    "an embedded text": _field(type="string", **{"x-kubernetes-embedded-resource": True}),
    "an embedded resource without fields": _field(type="object", **{"x-kubernetes-embedded-resource": True}),
    "an odd list type": _field(type="array", items=_TEXT, **{"x-kubernetes-list-type": "odd"}),
    "a list type of a text": _field(type="string", **{"x-kubernetes-list-type": "set"}),
    "an odd map type": _field(type="object", **{"x-kubernetes-map-type": "odd"}),
    "a map type of a text": _field(type="string", **{"x-kubernetes-map-type": "atomic"}),
    "a set of objects": _field(type="array", items=_ITEM, **{"x-kubernetes-list-type": "set"}),
    "a map without keys": _field(type="array", items=_ITEM, **{"x-kubernetes-list-type": "map"}),
    "keys without a map": _field(type="array", items=_ITEM, **{"x-kubernetes-list-map-keys": ["a"]}),
    "keys of a set": _field(**{**_KEYED, "items": _TEXT, "x-kubernetes-list-type": "set"}),
    "a missing key": _field(**{**_KEYED, "x-kubernetes-list-map-keys": ["b"]}),
    "a repeated key": _field(**{**_KEYED, "x-kubernetes-list-map-keys": ["a", "a"]}),
    "a key that is not required": _field(**{**_KEYED, "items": {**_ITEM, "required": []}}),
    "a key that is an object": _field(**{**_KEYED, "items": {**_ITEM, "properties": {"a": {"type": "object"}}}}),
    "a map of texts": _field(**{**_KEYED, "items": _TEXT}),
    "nullable items of a map": _field(**{**_KEYED, "items": {**_ITEM, "nullable": True}}),
    "a default of another type": _field(type="integer", default="x"),
    "a default that breaks a rule": _field(type="string", default="x", minLength=2),
    "a default with unknown fields": _field(type="object", default={"a": 1}),
    "a default with a wrong field": _field(type="object", default={"a": 1}, properties={"a": _TEXT}),
    "a default without a field": _field(type="object", default={}, properties={"a": _TEXT}, required=["a"]),
    "an empty rule": _field(type="string", **{"x-kubernetes-validations": [{"rule": " "}]}),
    "a message of two lines": _field(
        type="string", **{"x-kubernetes-validations": [{"rule": "true", "message": "a\nb"}]}
    ),
}
_FOO = f"{CRDS}/foos.{GROUP}"
_UPDATES: dict[str, Any] = {
    "another scope": {"spec": {"scope": "Cluster"}},
    "another kind": {"spec": {"names": {"kind": "Bar", "listKind": "BarList"}}},
    "another plural": {"spec": {"names": {"plural": "bars"}}},
    "another group": {"spec": {"group": "other.example.com"}},
}
_GOOD = {
    "bsonobjectid": "507f1f77bcf86cd799439011",
    "byte": "YWJj",
    "cidr": "10.0.0.0/8",
    "creditcard": "4111-1111-1111-1111",
    "date": "2024-02-29",
    "date_time": "2024-02-29T12:00:00.5+01:00",
    "duration": "1h30m",
    "email": "a@example.com",
    "hexcolor": "#fff",
    "hostname": "example.com",
    "ipv4": "10.0.0.1",
    "ipv6": "fd00::1",
    "isbn": "978-0321751041",
    "isbn10": "0321751043",
    "isbn13": "978-0321751041",
    "k8s_long_name": "a.b-c",
    "k8s_short_name": "a-b",
    "mac": "01:02:03:04:05:06",
    "password": "x",
    "rgbcolor": "rgb(255, 0, 1)",
    "ssn": "123-45-6789",
    "uri": "https://example.com/a?b#c",
    "uuid": "a8098c1a-f86e-11da-bd1a-00112444be1e",
    "uuid3": "6fa459ea-ee8a-3ca4-894e-db77e160355e",
    "uuid4": "16fd2706-8baf-433b-82eb-8c7fada847da",
    "uuid5": "886313e1-3b8a-5372-9b90-0c9aee199e5d",
    "odd": "anything",
    "int32": 2147483647,
    "int64": 2147483648,
    "float": 1.5,
    "any": "ab",
    "one": "bcd",
    "all": "abc",
    "not": "b",
    "either": {"a": "x"},
    "amount": "5%",
    "few": {"a": 1},
    "inner": {"apiVersion": "v1", "kind": "Pod", "x": 1},
    "number": 2,
    "pairs": [{"a": "x"}, {"a": "x", "b": "y"}],
    "maybe": None,
    "texts": ["a", None],
    "words": "ein Maß",
}
_BAD: dict[str, list[Any]] = {
    **{name: ["?", ""] for name in list(_GOOD)[:26] if name != "password"},
    "byte": ["YWJ", "a b"],
    "cidr": ["10.0.0.0/33", "10.0.0.0"],
    "date": ["2023-02-29", "2024-2-9"],
    "date_time": ["2024-02-29 12:00:00Z", "2024-02-29T24:00:00Z"],
    "duration": ["1 parsec", "x1h"],
    "hostname": ["-a.example.com", "a_b"],
    "ipv4": ["10.0.0.256", "fd00::1"],
    "ipv6": ["10.0.0.1", "fe80::1%eth0"],
    "mac": ["01:02:03", "01-02-03-04-05-0g"],
    "uri": ["example", "http://[::1"],
    "int32": [2147483648],
    "any": ["bc", 3],
    "one": ["abc", "b"],
    "all": ["ab", "b", "bcd"],
    "not": ["a"],
    "either": [{}, {"a": "x", "b": "y"}],
    "amount": [6, "5", 1.5],
    "few": [{}, {"a": 1, "b": 2, "c": 3}],
    "inner": [{}, {"apiVersion": "v1", "kind": ""}],
    "number": [3, "1"],
    "pairs": [[{"a": "x"}, {"a": "x", "b": "x"}], [{"a": "x", "b": "x", "c": "y"}], [{"b": "x"}]],
    "open": [{"low": 1.5}, {"low": 2}],
    "maybe": [{"a": "x"}],
    "texts": [[1], [{}]],
    "words": ["a1", ""],
}

SCENARIOS: tuple[Scenario, ...] = (
    *(scenario(f"a definition with {what}", post(CRDS, crd, dryRun="All")) for what, crd in _DEFINITIONS.items()),
    scenario(
        "a definition with two storage versions",
        post(CRDS, _versions({"name": "v1"}, {"name": "v2"}), dryRun="All"),
    ),
    *(scenario(f"an update to {what}", patch(_FOO, body, dryRun="All")) for what, body in _UPDATES.items()),
    scenario("a good Shape", post(SHAPES, shape("one", **_GOOD)), get(f"{SHAPES}/one")),
    *(
        scenario(f"a Shape with {field} {value!r}", post(SHAPES, shape("one", **{field: value})))
        for field, values in _BAD.items()
        for value in values
    ),
    scenario("a null inside", post(SHAPES, shape("one", maybe={"a": None}, few={"a": None}, texts=[None]))),
)
