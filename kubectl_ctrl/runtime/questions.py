"""The calls of `ctx.read` and `ctx.write` as they are recorded: alike live, as a plan and as a replay.

A call is described before it is carried out, and never refused here: its errors are recorded beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from kubectl_ctrl.errors import ApiError, CallError, ControllerError, CtrlError
from kubectl_ctrl.model.attempt import RaisedError
from kubectl_ctrl.model.objects import Key, Obj, uid_of
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.runtime.contract import Labels
from kubectl_ctrl.value import replace

Options = tuple[tuple[str, str], ...]

_LONGEST_MESSAGE = 4000


class Question(NamedTuple):
    """One call of `ctx.write` with its arguments at that moment."""

    verb: str
    resource: Resource
    key: Key
    body: str  # JSON of what was given; "" where the verb takes nothing
    options: Options


# --- ctx.read


def place(resource: Resource, namespace: str | None, own: str) -> str:
    """The namespace: "" for all, or for none."""
    if not resource.namespaced:
        return ""
    return own if namespace is None else namespace


def listing(place: str, labels: Labels | None) -> str:
    text = "" if labels is None else labels_text(labels)
    return " ".join(filter(None, (place or "all", text)))


def labels_text(labels: Labels) -> str:
    if isinstance(labels, Mapping):
        return ",".join(f"{key}={value}" for key, value in labels.items())
    return str(labels)


def controlled(owner: Obj) -> str:
    return f"controlled by {uid_of(owner)}"


def by_index(index: str, value: str) -> str:
    return f"index {index}={value}"


# --- ctx.write


def ensure(child: Obj, owner: Obj, resource: Resource, left_out: Iterable[str]) -> Question:
    options = (("owner", _meta(owner, "uid")), ("leave_out", ",".join(left_out)))
    at = _meta(child, "namespace") or _meta(owner, "namespace"), _meta(child, "name")
    return _question("ensure", resource, at, child, options)


def status(obj: Obj, resource: Resource, said: Obj) -> Question:
    return _about(obj, "status", resource, said, (("uid", _meta(obj, "uid")),))


def create(obj: Obj, resource: Resource, own: str) -> Question:
    return _question("create", resource, (_meta(obj, "namespace") or own, _meta(obj, "name")), obj)


def patch(obj: Obj, resource: Resource, change: Obj, subresource: str, any_version: bool) -> Question:
    options = (("subresource", subresource), ("any_version", "true" if any_version else ""))
    return _about(obj, "patch", resource, change, (*_pinned(obj), *options))


def typed(verb: str, ref: ObjectRef, body: Any, options: Options) -> Question:
    """A write of `ctx.official()`."""
    said = (("subresource", ref.subresource), *options)
    return _question(verb, ref.resource, (ref.namespace, ref.name), body, said)


def delete(obj: Obj, resource: Resource, propagation: str, any_version: bool) -> Question:
    options = (("propagation", propagation), ("any_version", "true" if any_version else ""))
    return _about(obj, "delete", resource, None, (*_pinned(obj), *options))


def finalizer(verb: str, obj: Obj, resource: Resource, name: str) -> Question:
    return _about(obj, verb, resource, None, (*_pinned(obj), ("name", name)))


def _about(obj: Obj, verb: str, resource: Resource, body: Any, options: Options) -> Question:
    return _question(verb, resource, (_meta(obj, "namespace"), _meta(obj, "name")), body, options)


def _question(verb: str, resource: Resource, at: tuple[str, str], body: Any, options: Options = ()) -> Question:
    namespace, name = at
    key = Key(namespace if resource.namespaced else "", name)
    said = tuple(option for option in options if option[1])  # unused options are omitted
    return Question(verb, resource, key, "" if body is None else as_json(body), said)


def _pinned(obj: Obj) -> Options:
    return ("uid", _meta(obj, "uid")), ("version", _meta(obj, "resourceVersion"))


def _meta(obj: Any, field: str) -> str:
    """A field of an object's metadata, or "" if it is not an object."""
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    return str(meta.get(field) or "") if isinstance(meta, dict) else ""


def as_json(value: Any) -> str:
    """As the client would send it; values that are not JSON by their repr."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return json.dumps(value, default=repr)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(f"<{type(value).__name__}>")


def plain_json(name: str, value: Any) -> str:
    """The JSON of a value for replays; refuses a value that would differ after decoding."""
    try:
        text = orjson.dumps(value)
        same = orjson.loads(text) == value
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        raise ControllerError(
            f"ctx.outside({name!r}, ...) returned a {type(value).__name__}, which is not JSON.",
            next_step="Let it return text, numbers, true, false, None, and lists and dicts of these.",
        )
    return text.decode()


# --- either


def raised(error: BaseException) -> RaisedError:
    """The error, for a replay to raise again."""
    bare = RaisedError(error=type(error).__name__, message=str(error)[:_LONGEST_MESSAGE])
    if isinstance(error, CtrlError):
        bare = replace(bare, next_step=error.next_step)
    if isinstance(error, CallError):
        site = error.site
        bare = replace(bare, verb=site.verb, target=site.target, retry_after=error.retry_after)
    if isinstance(error, ApiError):
        bare = replace(bare, code=error.code, reason=error.reason, causes=error.causes)
    return bare
