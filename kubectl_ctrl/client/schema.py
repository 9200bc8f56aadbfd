"""The OpenAPI v3 schema of a served resource type, and the removal of fields that it lacks.

The API server rejects an apply with a field that a CRD's schema lacks, and silently drops the field from a patch. If
the cluster's CRD is older than the manifest, such fields are therefore removed first, and reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from kubectl_ctrl.client.order import JSON
from kubectl_ctrl.client.responses import decoded
from kubectl_ctrl.errors import BadAnswer, CallSite, Forbidden, NotFound
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.value import Unshown, Value

_INDEX = "/openapi/v3"
_REF = "#/components/schemas/"
_GVK = "x-kubernetes-group-version-kind"
_KEEP_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_ALWAYS_KNOWN = frozenset({"apiVersion", "kind", "metadata"})


class Schema(Value):
    """A type's schema, with the schemas that it refers to."""

    root: Unshown[Obj]
    parts: Unshown[dict[str, Obj]]

    def node(self, schema: Any) -> tuple[Obj, bool]:
        """A schema after following its $ref, and whether there was one."""
        if not isinstance(schema, dict):
            return {}, False
        for place in (schema, *(schema.get("allOf") or [])):
            name = _ref(place)
            if name in self.parts:
                return self.parts[name], True
        return schema, False


class SchemaCache:
    """Schemas, each valid until the server's hash of its document changes."""

    def __init__(self) -> None:
        self._kept: dict[Resource, tuple[str, Schema | None]] = {}

    def get(self, resource: Resource, url: str) -> tuple[bool, Schema | None]:
        """Whether the document's schema for the type is cached, and that schema (None: it has none)."""
        kept = self._kept.get(resource)
        return (True, kept[1]) if kept is not None and kept[0] == url else (False, None)

    def put(self, resource: Resource, url: str, schema: Schema | None) -> None:
        self._kept[resource] = (url, schema)

    def __repr__(self) -> str:
        return f"SchemaCache(types={len(self._kept)})"


class SchemaClient(Protocol):
    """The part of the client that this module needs."""

    schemas: SchemaCache

    async def raw(
        self, method: str, path: str, *, query: tuple[tuple[str, str], ...] = (), accept: str = JSON
    ) -> HttpResponse: ...


async def served_schema(client: SchemaClient, resource: Resource) -> Schema | None:
    """The server's current schema for a type; None if there is none, or no right to read it.

    The index is read each time, a document only if its hash has changed.
    """
    try:
        index = await _document(client, _INDEX)
        url = _url_in(index, resource)
        if url is None:
            return None
        known, schema = client.schemas.get(resource, url)
        if not known:
            schema = schema_in(await _document(client, url), resource)
            client.schemas.put(resource, url, schema)
    except (NotFound, Forbidden):
        return None
    return schema


def schema_in(document: Obj, resource: Resource) -> Schema | None:
    """The schema of a type in the document of its group version."""
    schemas = (document.get("components") or {}).get("schemas") or {}
    wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    root = next((schema for schema in schemas.values() if wanted in (schema.get(_GVK) or [])), None)
    return Schema(root, _parts(root, schemas)) if root is not None else None


def prune(schema: Schema, obj: Any, path: Sequence[str] = ()) -> tuple[Any, list[str]]:
    """A copy of `obj`, the part at `path` of an object of the type, without unknown fields; and their paths.

    Paths look like `status.conditions[].foo`, each once.
    """
    node, referred = schema.node(schema.root)
    for name in path:
        node, referred = schema.node(_below(node, name))
    pruner = _Pruner(schema)
    kept = pruner.kept(node, referred, obj, ".".join(path))
    return kept, list(pruner.dropped)


class _Pruner:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.dropped: dict[str, None] = {}

    def kept(self, node: Obj, referred: bool, value: Any, path: str) -> Any:
        if isinstance(value, list):
            items, items_referred = self._schema.node(node.get("items"))
            return [self.kept(items, items_referred, item, f"{path}[]") for item in value]
        if not isinstance(value, dict) or _allows_anything(node, referred):
            return value
        return {key: kept for key, inner in value.items() for kept in self._field(node, key, inner, path)}

    def _field(self, node: Obj, key: str, value: Any, path: str) -> Iterator[Any]:
        """The pruned value of the field, or nothing."""
        place = f"{path}.{key}" if path else key
        below = _below(node, key)
        if (not path or node.get(_EMBEDDED)) and key in _ALWAYS_KNOWN:
            yield value
        elif below is not None:
            yield self.kept(*self._schema.node(below), value, place) if isinstance(value, dict | list) else value
        elif node.get(_KEEP_UNKNOWN) or node.get("additionalProperties") is True:
            yield value
        else:
            self.dropped[place] = None


def _allows_anything(node: Obj, referred: bool) -> bool:
    """Whether a schema without properties allows any field.

    In a CRD, a plain `type: object` allows none. Built-in types for arbitrary JSON are always used by $ref.
    """
    if node.get("properties") or node.get("additionalProperties") is not None:
        return False
    return referred or node.get("type") != "object" or bool(node.get(_KEEP_UNKNOWN))


def _below(node: Obj, name: str) -> Any:
    """The schema of a field, or None."""
    properties = node.get("properties") or {}
    if name in properties:
        return properties[name]
    additional = node.get("additionalProperties")
    return additional if isinstance(additional, dict) else None


def _ref(schema: Any) -> str:
    ref = schema.get("$ref") if isinstance(schema, dict) else None
    return str(ref).removeprefix(_REF) if ref else ""


def _parts(root: Obj, schemas: Obj) -> dict[str, Obj]:
    """All schemas that a schema refers to, directly or not; a document has a hundred others."""
    parts: dict[str, Obj] = {}
    open_: list[Any] = [root]
    while open_:
        node = open_.pop()
        if isinstance(node, dict):
            name = _ref(node)
            if name in schemas and name not in parts:
                parts[name] = schemas[name]
                open_.append(schemas[name])
            open_.extend(node.values())
        elif isinstance(node, list):
            open_.extend(node)
    return parts


async def _document(client: SchemaClient, url: str) -> Obj:
    """A document of this server, even if its URL names another host."""
    parts = urlsplit(url)
    site = CallSite("get", parts.path)
    if not parts.path.startswith(_INDEX):
        raise BadAnswer(f"The OpenAPI index points to another server: {parts.path!r}.", site=site)
    response = await client.raw("GET", parts.path, query=tuple(parse_qsl(parts.query)))
    try:
        document = decoded(response.body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise BadAnswer(f"The answer of {parts.path!r} is not an OpenAPI document.", site=site)
    return document


def _url_in(index: Obj, resource: Resource) -> str | None:
    entry = (index.get("paths") or {}).get(resource.root.removeprefix("/"))
    url = entry.get("serverRelativeURL") if isinstance(entry, dict) else None
    return str(url) if url else None
