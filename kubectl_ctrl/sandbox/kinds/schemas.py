"""The schemas of the built-in types, from the data that hack/update.d/kinds writes.

They have the form of a CRD's schemas. Beyond OpenAPI a struct has the rules of its JSON form in Go: `always` has the
fields that are present even when empty, with their empty value ({} means that of the inner struct), `pointers` the
scalars that are present when set to zero, `types` the Go types that OpenAPI does not show, `struct` its Go type, and
`component` its OpenAPI name.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

from kubectl_ctrl.model.objects import Obj

STRING: Obj = {"type": "string"}
OPEN: Obj = {"x-kubernetes-preserve-unknown-fields": True}
RAW: Obj = {"type": "object", "x-kubernetes-map-type": "atomic", **OPEN}
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"

_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

# The types that encode themselves as JSON.
_SPECIAL: dict[str, Obj] = {
    f"{_META}.FieldsV1": OPEN,
    f"{_META}.Time": {"type": "string", "format": "date-time"},
    f"{_META}.MicroTime": {"type": "string", "format": "micro-time"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"format": "quantity"},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": RAW,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"x-kubernetes-int-or-string": True, "format": "int-or-string"},
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": {"format": "schema-or-list", **OPEN},
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": {"format": "schema-or-bool", **OPEN},
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": {"format": "schema-or-list", **OPEN},
}


def load(name: str) -> Any:
    """One file of the data."""
    return json.loads(lzma.decompress((Path(__file__).parent / "data" / f"{name}.json.xz").read_bytes()))


@cache
def components() -> dict[str, Obj]:
    """Every schema as in the data, by its OpenAPI name."""
    return dict(load("schemas"))


@cache
def component_of(group: str, version: str, kind: str) -> str:
    """The OpenAPI name of a kind."""
    wanted = f"{group}/{version}/{kind}"
    return next(name for name, schema in components().items() if wanted in schema.get("kinds", ()))


def of(group: str, version: str, kind: str) -> Obj:
    """The whole schema of a kind; shared, and never changed."""
    return _resolved(component_of(group, version, kind))


def metadata() -> Obj:
    """The schema of the metadata of every object."""
    return _resolved(f"{_META}.ObjectMeta")


def json_schema() -> Obj:
    """The schema of the schemas in CustomResourceDefinitions."""
    return _resolved(f"{_EXTENSIONS}.JSONSchemaProps")


def full(schema: Obj) -> Obj:
    """The schema of a custom resource with the metadata that every kind has."""
    return {**schema, "properties": {**(schema.get("properties") or {}), "metadata": metadata()}}


_RESOLVED: dict[str, Obj] = {}
_LOCK = RLock()  # several servers may run in threads of one process


def _resolved(name: str) -> Obj:
    with _LOCK:
        return _RESOLVED[name] if name in _RESOLVED else _made(name)


def _made(name: str) -> Obj:
    # Entered before its properties are: a schema may contain itself.
    schema = _RESOLVED[name] = dict(_SPECIAL.get(name) or components()[name])
    _, version, kind = name.rsplit(".", 2)
    if "properties" in schema:
        always = schema.get("always") or {}
        schema |= {"component": name, "struct": f"{version}.{kind}"}
        schema["properties"] = {key: _part(part, always.get(key)) for key, part in schema["properties"].items()}
    elif schema in ({}, {"type": "object"}):
        schema |= OPEN
    return schema


def _part(part: Obj, zero: Any = None) -> Obj:
    """A part of a schema, without references."""
    part = dict(part)
    reference = part.pop("$ref", "")
    for key in ("items", "additionalProperties"):
        if key in part:
            part[key] = _part(part[key])
    if zero not in (None, {}):
        part.setdefault("default", zero)
    if not reference:
        return part
    if part.get("default") == {}:
        del part["default"]
    return {**_resolved(reference), **part} if part else _resolved(reference)
