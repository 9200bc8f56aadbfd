"""JSON patches as the API server applies them, which is more lenient than RFC 6902.

A missing key of an object counts as null: it can be replaced and tested. A negative index counts from the end. The
part of a path before its first slash is ignored. The input is not changed; results share its unchanged parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kubectl_ctrl.model.objects import Obj

_INDEX = re.compile(r"[+-]?[0-9]+")


class Unfit(Exception):
    """An operation cannot be applied to the object. The server does not tell which one."""


def patched(obj: Any, patch: Sequence[Obj]) -> Any:
    """The object after all operations."""
    for operation in patch:
        obj = _patched(obj, operation)
    return obj


def _patched(obj: Any, operation: Obj) -> Any:
    path, value = operation.get("path"), operation.get("value")
    if not isinstance(path, str):
        raise Unfit("the path is missing")
    match operation.get("op"):
        case "add":
            return _edited(obj, path, lambda container, key: _with(container, key, value, insert=True))
        case "replace":
            return _replaced(obj, path, value)
        case "remove":
            return _edited(obj, path, _without)
        case "test":
            if not _equal(obj if path == "" else _value(obj, path), value):
                raise Unfit("the value is different")
            return obj
        case "copy":
            found = _value(obj, _source(operation))
            return _edited(obj, path, lambda container, key: _with(container, key, found, insert=True))
        case "move":
            found = _value(obj, _source(operation))
            obj = _edited(obj, _source(operation), _without)
            return _edited(obj, path, lambda container, key: _with(container, key, found, insert=True))
    raise Unfit("the operation is unknown")


def _source(operation: Obj) -> str:
    if not isinstance(operation.get("from"), str):
        raise Unfit("the source is missing")
    return str(operation["from"])


def _replaced(obj: Any, path: str, value: Any) -> Any:
    if path == "":
        if not isinstance(value, (dict, list)):
            raise Unfit("the whole object cannot become a plain value")
        return value
    _value(obj, path)
    return _edited(obj, path, lambda container, key: _with(container, key, value, insert=False))


def _parts(path: str) -> list[str]:
    parts = path.split("/")[1:]
    if not parts:
        raise Unfit("the path has no slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _value(obj: Any, path: str) -> Any:
    for part in _parts(path):
        obj = _get(obj, part)
    return obj


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return _list(container)[_index(key, len(container))]


def _list(container: Any) -> list[Any]:
    if not isinstance(container, list):
        raise Unfit("the path leads through a plain value")
    return container


def _index(key: str, size: int) -> int:
    """The index of an item in a list of this size."""
    if not _INDEX.fullmatch(key) or not -size <= int(key) < size:
        raise Unfit(f"{key!r} is not an index")
    return int(key) % size


def _edited(obj: Any, path: str, edit: Callable[[Any, str], Any]) -> Any:
    """A copy with the container of the path's target edited; copies only the containers on the path."""

    def descend(container: Any, parts: list[str]) -> Any:
        if len(parts) == 1:
            return edit(container, parts[0])
        inner = descend(_get(container, parts[0]), parts[1:])
        return _with(container, parts[0], inner, insert=False)

    return descend(obj, _parts(path))


def _with(container: Any, key: str, value: Any, *, insert: bool) -> Any:
    if isinstance(container, dict):
        return {**container, key: value}
    items, size = _list(container), len(container)
    if not insert:
        place = _index(key, size)
        return [*items[:place], value, *items[place + 1 :]]
    place = size if key == "-" else _index(key, size + 1)
    return [*items[:place], value, *items[place:]]


def _without(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        if key not in container:
            raise Unfit(f"{key!r} is missing")
        return {name: value for name, value in container.items() if name != key}
    place = _index(key, len(_list(container)))
    return [*container[:place], *container[place + 1 :]]


def _equal(a: Any, b: Any) -> bool:
    """Equality of JSON texts: 1 is not 1.0."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    return type(a) is type(b) and bool(a == b)
