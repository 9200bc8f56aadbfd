"""OpenAPI v3: one document per group and version, for `kubectl explain` and for clients that check objects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.kinds import schemas
from kubectl_ctrl.sandbox.kinds.catalog import BUILT_IN, ServedKind
from kubectl_ctrl.sandbox.requests import ServedKinds

_PREFIX = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_INFO = {"title": "Kubernetes", "version": "v1.36.3"}
# The same without a path in both forms: kubectl asks for version 2 when version 3 does not have a type.
_SECOND = {"swagger": "2.0", "info": _INFO, "paths": {}}
_SECOND_BINARY = b"\n\x032.0\x12\x15\n\nKubernetes\x12\x07v1.36.3B\0"
_OWN = ("always", "pointers", "types", "kinds")  # what the data has beyond OpenAPI


def handle(served: ServedKinds, root: str, headers: Mapping[str, str], query: Mapping[str, str]) -> HttpResponse | None:
    """The index, or the document of one root such as `apis/apps/v1`; None if there is none."""
    roots = _roots(served)
    if not root:
        paths = {one: {"serverRelativeURL": _url(one, _hash(kinds))} for one, kinds in roots.items()}
        return answers.answer({"paths": paths})
    if root not in roots:
        return None
    current = _hash(roots[root])
    kept = {"etag": f'"{current}"', "vary": "Accept", "cache-control": "public"}
    if query.get("hash", current) != current:
        return HttpResponse(status=301, headers={**kept, "location": _url(root, current)})
    if f'"{current}"' in headers.get("if-none-match", ""):
        return HttpResponse(status=304, headers=kept)
    if "hash" in query:
        kept["cache-control"] = "public, immutable"
    kept["content-type"] = "application/json"
    return HttpResponse(status=200, headers=kept, body=_document(roots[root]))


def second(headers: Mapping[str, str]) -> HttpResponse:
    if "proto-openapi" not in headers.get("accept", ""):
        return answers.answer(_SECOND)
    media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    return HttpResponse(status=200, headers={"content-type": media}, body=_SECOND_BINARY)


def _roots(served: ServedKinds) -> dict[str, tuple[ServedKind, ...]]:
    roots: dict[str, tuple[ServedKind, ...]] = {}
    for kind in served.all():
        root = kind.resource.root.strip("/")
        roots[root] = (*roots.get(root, ()), kind)
    return dict(sorted(roots.items()))


def _url(root: str, value: str) -> str:
    return f"/openapi/v3/{root}?hash={value}"


def _hash(kinds: tuple[ServedKind, ...]) -> str:
    """Built-in schemas change only with the version, so their documents need not be made for their hash."""
    custom = [[kind.resource.kind, kind.resource.plural, kind.schema] for kind in kinds if kind.custom]
    content = [_INFO, kinds[0].resource.api_version, len(kinds), custom]
    return hashlib.sha512(answers.encode(content)).hexdigest().upper()


def _document(kinds: tuple[ServedKind, ...]) -> bytes:
    return _built_in_document(kinds[0].resource.root) if not kinds[0].custom else _encoded(kinds)


@cache
def _built_in_document(root: str) -> bytes:
    return _encoded(tuple(kind for kind in BUILT_IN if kind.resource.root == root))


def _encoded(kinds: tuple[ServedKind, ...]) -> bytes:
    components: dict[str, Obj] = {}
    wanted = [f"{_META}.{name}" for name in ("DeleteOptions", "ListMeta", "ObjectMeta", "Status")]
    for kind in kinds:
        if kind.custom:
            components |= {_custom_name(kind): _custom(kind), f"{_custom_name(kind)}List": _custom_list(kind)}
        else:
            wanted += _component_names(kind)
    _close(wanted, components)
    paths = {path: operations for kind in kinds for path, operations in _paths(kind)}
    document = {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": components}}
    return answers.encode(document)


def _close(wanted: list[str], components: dict[str, Obj]) -> None:
    """Add these components and all that they refer to."""
    while wanted:
        name = wanted.pop()
        if name not in components:
            wanted += _references(schemas.components()[name])
            components[name] = _published(name)


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for item in schema for name in _references(item)]
    if not isinstance(schema, dict):
        return []
    found = [name for key, value in schema.items() if key != "default" for name in _references(value)]
    return [*found, schema["$ref"]] if isinstance(schema.get("$ref"), str) else found


def _component_names(kind: ServedKind) -> list[str]:
    """A kind's own schema and that of its list; a virtual kind has no list."""
    group, version, name = _gvk(kind).values()
    listed = f"{group}/{version}/{name}List"
    lists = [one for one, schema in schemas.components().items() if listed in schema.get("kinds", ())]
    return [schemas.component_of(group, version, name), *lists]


@cache
def _descriptions() -> dict[str, list[Any]]:
    return dict(schemas.load("descriptions"))


def _published(name: str) -> Obj:
    """A component as the server publishes it."""
    schema = schemas.components()[name]
    about, texts = _descriptions()[name]
    always = schema.get("always") or {}
    result: Obj = {"description": about} if about else {}
    result |= {key: value for key, value in schema.items() if key not in _OWN}
    if "properties" in schema:
        result["properties"] = {
            key: {**({"description": texts[key]} if key in texts else {}), **_expanded(part, always.get(key))}
            for key, part in schema["properties"].items()
        }
    if kinds := schema.get("kinds"):
        parts = [one.split("/") for one in kinds]
        result["x-kubernetes-group-version-kind"] = [
            {"group": group, "kind": kind, "version": version} for group, version, kind in parts
        ]
    return result


def _expanded(part: Obj, zero: Any = None) -> Obj:
    """A part of a schema with its references in the form of OpenAPI."""
    result = {
        key: _expanded(value) if key in ("items", "additionalProperties") else value for key, value in part.items()
    }
    if zero is not None and "default" not in result:
        result["default"] = zero
    if "$ref" in result:
        reference: Obj = {"$ref": f"{_PREFIX}{result.pop('$ref')}"}
        result = {"allOf": [reference], **result} if result else reference
    return result


def _custom_name(kind: ServedKind) -> str:
    """`io.k8s.samplecontroller.v1alpha1.Foo`: the labels of the group in reverse order."""
    group = ".".join(reversed(kind.resource.group.split(".")))
    return f"{group}.{kind.resource.version}.{kind.resource.kind}"


def _custom(kind: ServedKind) -> Obj:
    properties = {
        **_type_meta(),
        **(kind.schema.get("properties") or {}),
        "metadata": {
            "allOf": [{"$ref": f"{_PREFIX}{_META}.ObjectMeta"}],
            "description": _texts("ConfigMap")["metadata"],
        },
    }
    schema = {**kind.schema, "type": "object", "properties": properties}
    return {**schema, "x-kubernetes-group-version-kind": [_gvk(kind)]}


def _texts(kind: str) -> dict[str, str]:
    """The descriptions that every kind has, from one of them."""
    return dict(_descriptions()[f"io.k8s.api.core.v1.{kind}"][1])


def _type_meta() -> Obj:
    texts = _texts("ConfigMap")
    return {name: {"description": texts[name], "type": "string"} for name in ("apiVersion", "kind")}


def _custom_list(kind: ServedKind) -> Obj:
    items = {"type": "array", "items": {"$ref": _PREFIX + _custom_name(kind)}}
    texts = _texts("ConfigMapList")
    meta = {"allOf": [{"$ref": f"{_PREFIX}{_META}.ListMeta"}], "description": texts["metadata"]}
    return {
        "description": f"{kind.resource.kind}List is a list of {kind.resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {**_type_meta(), "items": items, "metadata": meta},
        "x-kubernetes-group-version-kind": [{**_gvk(kind), "kind": f"{kind.resource.kind}List"}],
    }


def _gvk(kind: ServedKind) -> Obj:
    resource = kind.resource
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


_OPERATIONS = (  # method, action, verb, whether the path names an object
    ("get", "list", "list", False),
    ("post", "post", "create", False),
    ("delete", "deletecollection", "deletecollection", False),
    ("get", "get", "get", True),
    ("put", "put", "update", True),
    ("patch", "patch", "patch", True),
    ("delete", "delete", "delete", True),
)


def _paths(kind: ServedKind) -> Iterator[tuple[str, Obj]]:
    """The paths of a kind; the parameter of writes tells kubectl that the server checks fields."""
    scope = "/namespaces/{namespace}" if kind.resource.namespaced else ""
    for named in (False, True):
        operations: Obj = {}
        for method, action, verb, names in _OPERATIONS:
            if names is named and verb in kind.verbs:
                checks = method in ("post", "put", "patch")
                parameter = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
                operations[method] = {
                    **({"parameters": [parameter]} if checks else {}),
                    "x-kubernetes-action": action,
                    "x-kubernetes-group-version-kind": _gvk(kind),
                }
        if operations:
            tail = "/{name}" if named else ""
            yield f"{kind.resource.root}{scope}/{kind.resource.plural}{tail}", operations
