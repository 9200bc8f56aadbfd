"""Applying JSON merge patches (RFC 7386) and JSON patches (RFC 6902).

The input is not changed. Results share their unchanged parts with it, so they are read-only too.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from typing import Any

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Obj


def apply_merge(obj: Any, patch: Any) -> Any:
    """`obj` after a merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge(result.get(key), value)
    return result


def merge_patch(old: Any, new: Any) -> Any:
    """The merge patch from `old` to `new`; None in either is the same as absent."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: Obj = {key: None for key in old if new.get(key) is None}
    for key, value in new.items():
        if value is not None and not same(old.get(key), value):
            patch[key] = merge_patch(old.get(key), value)
    return patch


def json_pointer(path: Sequence[str | int]) -> str:
    """`("metadata", "labels", "a/b")` as `/metadata/labels/a~1b`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def apply_json(obj: Any, patch: Sequence[Obj]) -> Any:
    """`obj` after a JSON patch; UsageError, with its number, for the first operation that fails."""
    for number, operation in enumerate(patch):
        try:
            obj = _apply_one(obj, operation)
        except (KeyError, IndexError, ValueError, TypeError) as exc:
            what = f"{operation.get('op')} {operation.get('path')}"
            raise UsageError(f"Operation {number} of the JSON patch ({what!r}) cannot be applied: {exc}.") from exc
    return obj


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: 1 equals 1.0, but true does not equal 1."""
    if not isinstance(a, (dict, list)):
        return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
    return surely_same(a, b) or bool(a == b and _alike(a, b))


def _alike(a: Any, b: Any) -> bool:
    """Whether equal values have their booleans at the same places."""
    if isinstance(a, dict):
        return all(_alike(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return all(map(_alike, a, b))
    return isinstance(a, bool) == isinstance(b, bool)


def surely_same(a: Any, b: Any) -> bool:
    """Whether two JSON values are certainly equal. Much faster than `same`, but False may also mean "unknown".

    For Python true == 1, so equal values must also have the same serialization.
    """
    try:
        return a is b or bool(a == b and marshal.dumps(a, 2) == marshal.dumps(b, 2))
    except ValueError:  # not a JSON value
        return False


_Edit = Callable[[Any, str], Any]  # (container, last part of the pointer) -> the container afterwards


def _apply_one(obj: Any, operation: Obj) -> Any:
    path = _parts(operation["path"])
    match operation["op"]:
        case "add":
            return _changed(obj, path, _adder(operation["value"]))
        case "replace":
            _at(obj, path)
            return _changed(obj, path, lambda container, part: _with(container, part, operation["value"]))
        case "remove":
            return _changed(obj, path, _remove)
        case "copy":
            return _changed(obj, path, _adder(_at(obj, _parts(operation["from"]))))
        case "move":
            source = _parts(operation["from"])
            if path[: len(source)] == source and path != source:
                raise ValueError("a value cannot move into itself")
            return _changed(_changed(obj, source, _remove), path, _adder(_at(obj, source)))
        case "test":
            if not same(_at(obj, path), operation["value"]):
                raise ValueError("the value is different")
            return obj
    raise ValueError("the operation is unknown")


def _parts(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise ValueError("a pointer starts with '/'")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _at(node: Any, path: list[str]) -> Any:
    for part in path:
        node = node[_index(node, part)] if isinstance(node, list) else _entry(node, part)
    return node


def _entry(node: Any, part: str) -> Any:
    if not isinstance(node, dict) or part not in node:
        raise ValueError(f"there is no {part!r}")
    return node[part]


def _index(node: list[Any], part: str, *, end: bool = False) -> int:
    """The index for a part of a pointer; `end` also allows the index after the last item."""
    if end and part == "-":
        return len(node)
    if not (part.isascii() and part.isdecimal()) or (part[0] == "0" and part != "0"):
        raise ValueError(f"{part!r} is not an index")
    if int(part) >= len(node) + end:
        raise ValueError(f"the list has no index {part}")
    return int(part)


def _changed(obj: Any, path: list[str], edit: _Edit) -> Any:
    """`obj` with the container of the path's target edited. For the empty path, the document is in a container too."""
    return _edited({"": obj}, ["", *path], edit).get("")


def _edited(node: Any, path: list[str], edit: _Edit) -> Any:
    """Copies only the containers on the path."""
    head, *rest = path
    if not rest:
        return edit(node, head)
    inner = _edited(_at(node, [head]), rest, edit)
    return _with(node, head, inner)


def _with(node: Any, part: str, value: Any) -> Any:
    if isinstance(node, list):
        place = _index(node, part)
        return [*node[:place], value, *node[place + 1 :]]
    return {**node, part: value}


def _adder(value: Any) -> _Edit:
    def add(container: Any, part: str) -> Any:
        if isinstance(container, list):
            place = _index(container, part, end=True)
            return [*container[:place], value, *container[place:]]
        if not isinstance(container, dict):
            raise ValueError(f"{part!r} has a parent that is neither object nor list")
        return {**container, part: value}

    return add


def _remove(container: Any, part: str) -> Any:
    if isinstance(container, list):
        place = _index(container, part)
        return [*container[:place], *container[place + 1 :]]
    _entry(container, part)
    return {key: value for key, value in container.items() if key != part}
