"""The reading verbs: get, and list with selectors, pages and versions."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Key, Obj, labels_of
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.sandbox import answers, options
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.sandbox.requests import ParsedRequest
from kubectl_ctrl.sandbox.storage import Storage, StoredObject

_DIGITS = 20  # of the largest version
# Field labels of built-in types that are not a path, and the value of a missing field that is not text.
_PATHS = {("Event", "source"): "source.component", ("Job", "status.successful"): "status.succeeded"}
_UNSET = {
    **dict.fromkeys(("spec.unschedulable", "spec.hostNetwork"), "false"),
    **dict.fromkeys(("status.replicas", "status.successful"), "0"),
}


def get(storage: Storage, ask: ParsedRequest) -> StoredObject:
    if (version := ask.query.get("resourceVersion", "")) and not is_version(version):
        raise answers.unparsed(bad_version(version))
    check_version(storage, version)
    stored = storage.stored(ask.kind.table, ask.key)
    if stored is None:
        raise answers.not_found(ask.resource, ask.name)
    return stored


def page(storage: Storage, ask: ParsedRequest) -> tuple[list[StoredObject], Obj]:
    """One page of a list, and its metadata; later pages come from the state of the first."""
    start, version = _start(storage, ask)
    tests = _selectors(ask)
    rows = storage.at(ask.kind.table, version)
    found = sorted(key for key in rows if key > start and (not ask.namespace or key.namespace == ask.namespace))
    if tests:
        found = [key for key in found if all(test(rows[key]) for test in tests)]
    limit = options.number(ask, "limit")
    shown = found[:limit] if limit > 0 else found
    meta: Obj = {"resourceVersion": str(version)}
    if len(shown) < len(found):
        meta["continue"] = _token(version, shown[-1])
        if not tests:
            meta["remainingItemCount"] = len(found) - len(shown)
    return [rows.stored[key] for key in shown], meta


def _start(storage: Storage, ask: ParsedRequest) -> tuple[Key, int]:
    """The key after which the page begins, and its version."""
    if token := ask.query.get("continue"):
        if ask.query.get("resourceVersion", "") not in ("", "0"):
            raise answers.bad_request("specifying resource version is not allowed when using continue")
        return _from_token(storage, token)
    version = check_version(storage, ask.query.get("resourceVersion", ""))
    options.check_list(ask)
    match = ask.query.get("resourceVersionMatch", "")
    exact = match == "Exact" or (not match and ask.query.get("limit") and version)
    if not exact:
        return Key("", ""), storage.version
    if version < storage.compacted:
        raise answers.expired("The resourceVersion for the provided list is too old.")
    return Key("", ""), version


def check_version(storage: Storage, text: str) -> int:
    if text and not is_version(text):
        raise answers.bad_request(f"invalid resource version: {bad_version(text)}")
    version = int(text or 0)
    if version > storage.version:
        raise answers.version_too_large(version, storage.version)
    return version


def is_version(text: str) -> bool:
    """Versions are numbers of 64 bits."""
    return text.isdecimal() and len(text) <= _DIGITS


def bad_version(text: str) -> str:
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def _token(version: int, last: Key) -> str:
    content = {"v": "meta.k8s.io/v1", "rv": version, "start": f"{last.namespace}/{last.name}"}
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def _from_token(storage: Storage, token: str) -> tuple[Key, int]:
    try:
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, _, name = content["start"].partition("/")
        version = int(content["rv"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise answers.bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    if not version:
        why = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        raise answers.bad_request(f"invalid continue token: continue key is not valid: {why}")
    if version > storage.version:
        raise answers.version_too_large(version, storage.version)
    if version == -1:  # the token of an Expired answer: continue in the current state
        return Key(namespace, name), storage.version
    if version < storage.compacted:
        message = (
            "The provided continue parameter is too old to display a consistent list result. You can start a new "
            "list without the continue parameter, or use the continue token in this response to retrieve the "
            "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
            "that were created, modified, or deleted between the time the first chunk was returned and now may show "
            "up in the list."
        )
        raise answers.expired(message, inconsistent=_token(-1, Key(namespace, name)))
    return Key(namespace, name), version


def chooser(ask: ParsedRequest) -> Callable[[Obj], bool]:
    """Whether an object is in the namespace and the selectors of a watch."""
    tests = _selectors(ask)
    if ask.namespace:
        tests.append(lambda obj: obj["metadata"].get("namespace") == ask.namespace)
    if len(tests) == 1:
        return tests[0]
    return lambda obj: all(test(obj) for test in tests)


def _selectors(ask: ParsedRequest) -> list[Callable[[Obj], bool]]:
    found = []
    if labels := ask.query.get("labelSelector"):
        found.append(_by_labels(labels))
    if fields := ask.query.get("fieldSelector"):
        found.append(_by_fields(ask.kind, fields))
    return found


def _by_labels(text: str) -> Callable[[Obj], bool]:
    try:
        selector = Selector.parse(text)
    except UsageError as error:
        raise answers.bad_request(f"unable to parse requirement: {error}") from error
    return lambda obj: selector.matches(labels_of(obj))


def _by_fields(kind: ServedKind, text: str) -> Callable[[Obj], bool]:
    known = ("metadata.name", *(["metadata.namespace"] if kind.resource.namespaced else []), *kind.field_labels)
    terms: list[tuple[str, str, bool]] = []
    for part in filter(None, text.split(",")):
        field, operator, value = _field_term(part)
        if field not in known and (kind.custom or kind.field_labels):
            raise answers.bad_request(f"field label not supported: {field}")
        if field not in known:
            names = ", ".join(f'"{name}"' for name in known)
            raise answers.bad_request(f'"{field}" is not a known field selector: only {names}')
        terms.append((field, value, operator == "!="))
    unset = {} if kind.custom else _UNSET
    return lambda obj: all(
        ((_field(obj, field) or unset.get(field, "")) == value) != negated for field, value, negated in terms
    )


def _field_term(part: str) -> tuple[str, str, str]:
    for operator in ("!=", "==", "="):
        field, found, value = part.partition(operator)
        if found:
            return field, operator, value
    raise answers.bad_request(f"invalid selector: '{part}'; can't understand '{part}'")


def _field(obj: Obj, label: str) -> str:
    path = _PATHS.get((str(obj.get("kind")), label), label)
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
