"""What a request asks for, as rules name it, and the words of its refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import unquote

from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.auth.users import User
from kubectl_ctrl.value import Value

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACES = frozenset({"status", "finalize"})
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Attributes(Value, kw_only=True):
    """One question to the authorizer. Without `of_resource`, only verb and path count."""

    user: User
    verb: str
    of_resource: bool = True
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def combined(self) -> str:
        """The resource with its subresource, as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def path_parts(path: str) -> list[str]:
    """What is authorized and what is done are read from the same parts, also of odd paths."""
    return unquote(path).strip("/").split("/")


def is_true(text: str) -> bool:
    """A query parameter as the server reads it."""
    return text != "0" and text.lower() != "false"


def attributes_of(request: HttpRequest, user: User) -> Attributes:
    """The path and the method as the API server reads them, whether or not the resource exists."""
    path, parts = unquote(request.path), path_parts(request.path)
    skipped = 1 if parts[:1] == ["api"] else 2
    if len(parts) < skipped + 2 or parts[0] not in ("api", "apis"):
        return Attributes(user=user, verb=request.method.lower(), of_resource=False, path=path)
    group, version = ("", *parts[1:2]) if skipped == 1 else parts[1:3]
    rest, namespace = parts[skipped + 1 :], ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
            rest = rest[2:]
    resource, name, subresource = (*rest, "", "")[:3]
    verb = _VERBS.get(request.method, "")
    if not name and verb == "get":
        query = dict(request.query)
        verb = "watch" if is_true(query.get("watch", "0")) else "list"
        name = _selected_name(query)
    elif not name and verb == "delete":
        verb = "deletecollection"
    return Attributes(
        user=user,
        verb=verb,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
        path=path,
    )


def _selected_name(query: Mapping[str, str]) -> str:
    """The name that a field selector demands."""
    for term in query.get("fieldSelector", "").split(","):
        field, equal, value = term.partition("=")
        if field == "metadata.name" and equal:
            name = value.removeprefix("=")
            return "" if name in (".", "..") or "/" in name or "%" in name else name
    return ""


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def list_quoted(texts: tuple[str, ...] | list[str]) -> str:
    """As Go prints a list of strings."""
    return "[" + " ".join(map(quoted, texts)) + "]"


def denied(asked: Attributes, reason: str = "") -> answers.Refusal:
    """The 403 of the authorizer."""
    user = f"User {quoted(asked.user.name)} cannot {asked.verb}"
    if not asked.of_resource:
        said = f"{user} path {quoted(asked.path)}"
    else:
        place = f"in the namespace {quoted(asked.namespace)}" if asked.namespace else "at the cluster scope"
        said = f"{user} resource {quoted(asked.combined)} in API group {quoted(asked.group)} {place}"
    said = said.translate(_HTML) + (f": {reason}" if reason else "")
    if not asked.of_resource:
        return forbidden("", "", "", said)
    return forbidden(asked.group, asked.resource, asked.name, said)


def forbidden(group: str, plural: str, name: str, why: str) -> answers.Refusal:
    """A 403 about any resource, or about none."""
    resource = f"{plural}.{group}" if group else plural
    start = f"{resource} {quoted(name)} is forbidden" if name else f"{resource} is forbidden"
    message = f"{start if resource else 'forbidden'}: {why}"
    body = answers.status(403, "Forbidden", message, name=name, group=group, kind=plural)
    return answers.Refusal(403, {"details": {}, **body})
