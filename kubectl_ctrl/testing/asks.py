"""Parses an HTTP request into verb, resource type, object and options, as the API server names them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from kubectl_ctrl.client.transport import HttpRequest
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import NAMESPACES, Resource
from kubectl_ctrl.testing import answers
from kubectl_ctrl.testing.kinds import ServedKind
from kubectl_ctrl.value import Unshown, Value, field

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
LARGEST_BODY = 3 * 1024 * 1024


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

    def body(self) -> Any:
        """The decoded body: JSON, or YAML that is also JSON."""
        if len(self.raw) > LARGEST_BODY:
            message = f"Request entity too large: limit is {LARGEST_BODY}"
            raise answers.Refusal(413, answers.status(413, "RequestEntityTooLarge", message))
        try:
            return json.loads(self.raw) if self.raw else None
        except ValueError as error:
            raise answers.bad_request(f"the object provided is unrecognized: {error}") from error

    def obj(self) -> Obj:
        body = self.body()
        if not isinstance(body, dict):
            raise answers.bad_request("the object provided is unrecognized (must be of type object)")
        body.setdefault("metadata", {})
        if not isinstance(body["metadata"], dict):
            raise answers.bad_request("metadata must be an object")
        return body


class ServedKinds:
    """The table of resource types, by path."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], ServedKind] = {}

    def add(self, kind: ServedKind) -> None:
        self._kinds[kind.resource.group, kind.resource.version, kind.resource.plural] = kind

    def drop(self, group: str, plural: str) -> None:
        self._kinds = {key: kind for key, kind in self._kinds.items() if (key[0], key[2]) != (group, plural)}

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
            raise LookupError(f"The scripted server does not serve {resource}.")
        return kind

    def of_table(self, table: str) -> ServedKind | None:
        """The kind whose version a table's objects are stored in."""
        kinds = [kind for kind in self._kinds.values() if kind.table == table]
        stored = [kind for kind in kinds if kind.resource.version == kind.storage_version]
        return next(iter([*stored, *kinds]), None)

    def of_object(self, obj: Obj) -> ServedKind:
        """The kind that an object declares."""
        for kind in self._kinds.values():
            if (kind.resource.api_version, kind.resource.kind) == (obj.get("apiVersion"), obj.get("kind")):
                return kind
        raise LookupError(f"The scripted server does not serve {obj.get('apiVersion')!r}, {obj.get('kind')!r}.")

    def __repr__(self) -> str:
        return f"ServedKinds(kinds={len(self._kinds)})"


def understand(request: HttpRequest, served: ServedKinds) -> ParsedRequest:
    """Raises the 404 of an unknown path and the 405 of an unknown method."""
    parts = [unquote(part) for part in request.path.strip("/").split("/")]
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
        verb=_verb(request.method, name, query, kind),
        kind=kind,
        namespace=namespace,
        name=name,
        subresource=subresource,
        query=query,
        headers={key.lower(): value for key, value in request.headers.items()},
        raw=request.body or b"",
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


def _verb(method: str, name: str, query: Mapping[str, str], kind: ServedKind) -> str:
    verb = _VERBS.get(method)
    if verb is None:
        raise answers.not_allowed()
    if name:
        if verb == "create":
            raise answers.not_allowed()
        return verb
    match verb:
        case "get":
            return "watch" if query.get("watch", "false") not in ("", "0", "false") else "list"
        case "delete" if kind.resource != NAMESPACES:
            return "deletecollection"
        case "create" if kind.resource.namespaced or not name:
            return "create"
    raise answers.not_allowed()
