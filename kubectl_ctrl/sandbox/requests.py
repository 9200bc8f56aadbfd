"""Parses an HTTP request into verb, resource type, object and options, as the API server names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.auth.attributes import is_true, path_parts
from kubectl_ctrl.sandbox.auth.users import ADMIN, User
from kubectl_ctrl.sandbox.encoding import bodies
from kubectl_ctrl.sandbox.kinds import schemas, structs
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.value import Unshown, Value, field, replace

_NAMED = ("get", "update", "patch", "delete")
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OPTIONS = Resource("", "v1", "", "DeleteOptions")
SCALE = Resource("autoscaling", "v1", "", "Scale")
# The types of bodies that are not of the resource's kind.
_BODIES = {
    "scale": SCALE,
    "eviction": Resource("policy", "v1", "", "Eviction"),
    "binding": Resource("", "v1", "", "Binding"),
    "token": Resource("authentication.k8s.io", "v1", "", "TokenRequest"),
}


class ParsedRequest(Value, kw_only=True):
    """One parsed request."""

    verb: str  # get, list, watch, create, update, patch, delete, deletecollection
    kind: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: Unshown[bytes] = b""
    user: User = ADMIN
    duplicates: tuple[str, ...] = ()  # known when the body is decoded

    @property
    def resource(self) -> Resource:
        return self.kind.resource

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def dry_run(self) -> bool:
        return bool(self.query.get("dryRun"))

    @property
    def manager(self) -> str:
        """The owner of the fields: fieldManager, else the user agent up to its first slash."""
        return self.query.get("fieldManager") or self.headers.get("user-agent", "unknown").partition("/")[0]

    def flag(self, name: str) -> bool:
        return self.query.get(name, "false") not in ("", "0", "false", "False", "F", "f", "FALSE")

    def opened(self) -> tuple[ParsedRequest, Any]:
        """The decoded body, and the request with the decoder's words about fields that occur twice in it."""
        media = self.headers.get("content-type", "")
        if self.verb == "patch":
            body, duplicates = bodies.decode_patch(media.partition(";")[0].strip(), self.raw)
            body = _object(body) if media.startswith("application/apply-patch") else body
        elif "delete" in self.verb:
            body, duplicates = bodies.decode(media, self.raw, self.kind, _OPTIONS.kind) if self.raw else ({}, [])
            body, _ = read(body, _OPTIONS)
        else:
            other = _BODIES.get(self.subresource)
            body, duplicates = bodies.decode(media, self.raw, self.kind, other.kind if other else "")
            body = _object(body)
            if other or self.kind.virtual:  # nobody else reads what is not stored
                body = self.typed(body, other or self.resource, duplicates)
        return replace(self, duplicates=tuple(duplicates)), body

    def typed(self, body: Obj, resource: Resource, duplicates: list[str]) -> Obj:
        """A body as its type reads it; raises the 400 of a strict request."""
        known, unknown = read(body, resource)
        if (unknown or duplicates) and self.query.get("fieldValidation") == "Strict":
            found = bodies.findings(self.kind, body, duplicates, unknown)
            raise answers.undecodable(resource, bodies.strict_error(found))
        known.setdefault("metadata", {})
        return known


def read(body: Any, resource: Resource) -> tuple[Obj, list[str]]:
    """A body without its unknown fields, and their paths."""
    try:
        return structs.read(body, schemas.of(resource.group, resource.version, resource.kind))
    except structs.WrongType as error:
        raise answers.undecodable(resource, str(error)) from error


def _object(body: Any) -> Obj:
    if not isinstance(body, dict):
        raise answers.bad_request("the object provided is unrecognized (must be of type object)")
    if body.get("metadata") is None:
        body["metadata"] = {}
    if not isinstance(body["metadata"], dict):
        raise answers.bad_request("metadata must be an object")
    return body


class ServedKinds:
    """The table of resource types, by path."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], ServedKind] = {}
        self._by_table: dict[str, ServedKind | None] = {}  # what was asked for since the last change
        self._by_name: dict[tuple[Any, Any], ServedKind] = {}

    def add(self, kind: ServedKind) -> None:
        self._kinds[kind.resource.group, kind.resource.version, kind.resource.plural] = kind
        self._forget()

    def drop(self, group: str, plural: str) -> None:
        self._kinds = {key: kind for key, kind in self._kinds.items() if (key[0], key[2]) != (group, plural)}
        self._forget()

    def _forget(self) -> None:
        self._by_table.clear()
        self._by_name.clear()

    def all(self) -> list[ServedKind]:
        return list(self._kinds.values())

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._kinds.get((group, version, plural))

    def is_built_in(self, group: str) -> bool:
        """Whether the group is built in; another component of the server answers for custom resources."""
        return any(kind.resource.group == group and not kind.custom for kind in self._kinds.values())

    def of(self, resource: Resource) -> ServedKind:
        kind = self.find(resource.group, resource.version, resource.plural)
        if kind is None:
            raise LookupError(f"This server does not serve {resource}.")
        return kind

    def of_table(self, table: str) -> ServedKind | None:
        """The kind whose version a table's objects are stored in."""
        if table not in self._by_table:
            self._by_table[table] = self._stored_in(table)
        return self._by_table[table]

    def _stored_in(self, table: str) -> ServedKind | None:
        kinds = [kind for kind in self._kinds.values() if kind.table == table]
        stored = [kind for kind in kinds if kind.resource.version == kind.storage_version]
        return next(iter([*stored, *kinds]), None)

    def of_object(self, obj: Obj) -> ServedKind:
        """The kind that an object declares."""
        name = obj.get("apiVersion"), obj.get("kind")
        if name not in self._by_name:
            kinds = self._kinds.values()
            found = (kind for kind in kinds if (kind.resource.api_version, kind.resource.kind) == name)
            if (kind := next(found, None)) is None:
                raise LookupError(f"This server does not serve {name[0]!r}, {name[1]!r}.")
            self._by_name[name] = kind
        return self._by_name[name]

    def __repr__(self) -> str:
        return f"ServedKinds(kinds={len(self._kinds)})"


def understand(request: HttpRequest, served: ServedKinds, user: User = ADMIN) -> ParsedRequest:
    """Raises the 404 of an unknown path and the 405 of an unknown method."""
    parts = path_parts(request.path)
    if "" in parts:  # else an empty group or namespace would count as the core group, or as all namespaces
        raise answers.no_such_path()
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise _nowhere(served, parts)
    kind, namespace, tail = _placed(served, group, version, rest)
    name, subresource = (*tail, "", "")[:2]
    if len(tail) > 2 or (subresource and subresource not in kind.subresources):
        # For a custom resource the server answers as if the object were missing.
        raise answers.not_found(kind.resource, name) if kind.custom else answers.no_such_resource()
    query = dict(request.query)
    return ParsedRequest(
        verb=_verb(request.method, name, subresource, query, kind),
        kind=kind,
        namespace=namespace,
        name=name,
        subresource=subresource,
        query=query,
        headers={key.lower(): value for key, value in request.headers.items()},
        raw=request.body or b"",
        user=user,
    )


def _nowhere(served: ServedKinds, parts: list[str]) -> answers.Refusal:
    """The 404 of a path without a resource: within the built-in groups it is a Status."""
    inside = parts[0] == "api" or (parts[0] == "apis" and served.is_built_in("".join(parts[1:2])))
    return answers.no_such_resource() if inside and len(parts) > 1 else answers.no_such_path()


def _placed(served: ServedKinds, group: str, version: str, rest: list[str]) -> tuple[ServedKind, str, list[str]]:
    """The kind, the namespace, and the path after the plural."""
    if rest[0] == "namespaces" and len(rest) >= 3:
        kind = served.find(group, version, rest[2])
        if kind is not None and kind.resource.namespaced:
            return kind, rest[1], rest[3:]
    kind = served.find(group, version, rest[0])
    if kind is None or (kind.resource.namespaced and len(rest) > 1):
        raise answers.no_such_resource() if served.is_built_in(group) else answers.no_such_path()
    return kind, "", rest[1:]


def _verb(method: str, name: str, subresource: str, query: Mapping[str, str], kind: ServedKind) -> str:
    verb = _VERBS.get(method)
    if verb is None:
        raise answers.not_allowed()
    if not name:
        if verb == "get":
            verb = "watch" if is_true(query.get("watch", "0")) else "list"
        elif verb == "delete":
            verb = "deletecollection"
    offered = kind.subresources[subresource] if subresource else kind.verbs
    if name and not subresource and not set(offered) & set(_NAMED):
        raise answers.no_such_resource()  # its objects have no paths
    if verb in offered and bool(name) == (bool(subresource) or verb in _NAMED):
        return verb
    raise answers.not_allowed()
