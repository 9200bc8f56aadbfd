"""Sets of fields, as server-side apply uses them: the set of an object, differences, and objects reduced by a set.

A set has the form of FieldsV1: a tree of elements such as `f:name`, `k:{"name":"web"}` and `v:"finalizer"`, in which an
element without children is a member, and one with children is a member if it has the mark `.`. Sets are never changed
in place. A schema says which lists merge by keys and which values are atomic; without one, objects are granular and
lists atomic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from sys import intern
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same, surely_same
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.value import Value

FieldSet = Obj
Path = tuple[str, ...]

ABSENT: Any = object()
_LEAF: FieldSet = {}  # one for all: most nodes of a set are leaves
_MARK = "."


def child_of(schema: Obj, key: str) -> tuple[Obj, bool]:
    """The schema of one entry of an object, and whether the entry is a named field rather than a key of a map."""
    properties = schema.get("properties") or {}
    if key in properties:
        return properties[key], True
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        return additional, False
    return {}, False


def items_of(schema: Obj) -> Obj:
    return schema.get("items") or {}


def is_leaf(value: Any, schema: Obj) -> bool:
    """Whether a value is owned as a whole."""
    if isinstance(value, dict):
        return schema.get("x-kubernetes-map-type") == "atomic"
    if isinstance(value, list):
        return schema.get("x-kubernetes-list-type") not in ("map", "set")
    return True


def element_of(item: Any, schema: Obj) -> str:
    """The path element of one item of a list that merges."""
    if schema["x-kubernetes-list-type"] == "set" or not isinstance(item, dict):
        return "v:" + answers.encode(item).decode()
    properties = items_of(schema).get("properties") or {}
    keys: Obj = {}
    for name in sorted(schema.get("x-kubernetes-list-map-keys") or ()):
        value = item.get(name, (properties.get(name) or {}).get("default"))
        if value is not None:
            keys[name] = value
    return "k:" + answers.encode(keys).decode()


def by_element(values: list[Any], schema: Obj) -> dict[str, Any]:
    """The items of a list that merges; of repeated ones the first."""
    found: dict[str, Any] = {}
    for item in values:
        found.setdefault(element_of(item, schema), item)
    return found


def _entries(value: Any, schema: Obj) -> Iterator[tuple[str, Any, Obj]]:
    """Element, value and schema of each entry of a granular value."""
    if isinstance(value, dict):
        for key, item in value.items():
            # The same few names are stored with every object.
            yield intern(f"f:{key}"), item, child_of(schema, key)[0]
    else:
        inner = items_of(schema)
        for element, item in by_element(value, schema).items():
            yield element, item, inner


def fields_of(value: Any, schema: Obj) -> FieldSet:
    """The set that applying this object would own."""
    return _fields_of(value, schema, itself=False) or {}


def _fields_of(value: Any, schema: Obj, *, itself: bool) -> FieldSet | None:
    """The members in a value; `itself`: an item or the value of a map's key, which is a member as such."""
    if is_leaf(value, schema):
        return _LEAF
    found: FieldSet = {}
    if isinstance(value, dict):
        for key in sorted(value):
            inner, named = child_of(schema, key)
            if (below := _fields_of(value[key], inner, itself=not named)) is not None:
                found[intern(f"f:{key}")] = below
        itself = itself or not value
    else:
        for element, item in sorted(by_element(value, schema).items()):
            found[element] = _fields_of(item, items_of(schema), itself=True)
    return _marked(found) if itself else found or None


class Comparison(Value):
    """The differences between two objects."""

    removed: FieldSet
    taken: FieldSet  # modified or added


def compare(old: Obj, new: Obj, schema: Obj) -> Comparison:
    removed, taken = _compare(old, new, schema)
    return Comparison(removed or {}, taken or {})


def _added(value: Any, schema: Obj) -> FieldSet:
    """A new value, whose every part is a member."""
    if not _filled(value) or is_leaf(value, schema):
        return _LEAF
    found: FieldSet = {_MARK: _LEAF}
    if isinstance(value, dict):
        for key in sorted(value):
            item = value[key]
            filled = isinstance(item, (dict, list))
            found[intern(f"f:{key}")] = _added(item, child_of(schema, key)[0]) if filled else _LEAF
    else:
        for element, item in sorted(by_element(value, schema).items()):
            found[element] = _added(item, items_of(schema))
    return found


def _compare(old: Any, new: Any, schema: Obj) -> tuple[FieldSet | None, FieldSet | None]:
    """What was removed, and what is taken; None for nothing."""
    if old is ABSENT:
        return None, _added(new, schema)
    shown = old if new is ABSENT or new is None else new  # null takes any form
    mixed = not (_empty(old) or _empty(new)) and type(old) is not type(new)
    if mixed or is_leaf(shown, schema) or not (_filled(old) or _filled(new)):
        if new is ABSENT:
            return _LEAF, None
        return None, None if same(old, new) else _LEAF
    before = {} if _empty(old) else {entry[0]: entry for entry in _entries(old, schema)}
    after = {} if _empty(new) else {entry[0]: entry for entry in _entries(new, schema)}
    removed: FieldSet = {}
    taken: FieldSet = {}
    for element in sorted(before | after):
        inner = (after.get(element) or before[element])[2]
        left = before[element][1] if element in before else ABSENT
        right = after[element][1] if element in after else ABSENT
        if left is not right and not (isinstance(left, (dict, list)) and surely_same(left, right)):
            gone, changed = _compare(left, right, inner)
            removed |= {} if gone is None else {element: gone}
            taken |= {} if changed is None else {element: changed}
    return _marked(removed) if new is ABSENT else removed or None, taken or None


def _empty(value: Any) -> bool:
    return value is ABSENT or value is None


def _filled(value: Any) -> bool:
    return isinstance(value, (dict, list)) and bool(value)


def merged(live: Any, config: Any, schema: Obj) -> Any:
    """`live` with `config` merged over it."""
    if live is ABSENT or type(live) is not type(config) or is_leaf(config, schema) or not config:
        # An empty object or list does not change the content of a granular one.
        return live if not config and _filled(live) and not is_leaf(config, schema) else config
    if isinstance(config, dict):
        result = dict(live)
        for key, value in config.items():
            result[key] = merged(live.get(key, ABSENT), value, child_of(schema, key)[0])
        return result
    return _merged_list(live, config, schema)


def _merged_list(live: list[Any], config: list[Any], schema: Obj) -> list[Any]:
    before, after = by_element(live, schema), by_element(config, schema)
    inner = items_of(schema)
    return [
        merged(before.get(element, ABSENT), after[element], inner) if element in after else before[element]
        for element in _merged_order(list(before), list(after))
    ]


def _merged_order(live: list[str], config: list[str]) -> list[str]:
    """The order of `config`; an item only in `live` stays in front of the shared item that followed it."""
    shared = [element for element in config if element in live]
    result: list[str] = []
    place = 0
    for element in config:
        while place < len(live) and not (shared and live[place] == shared[0]):
            if live[place] not in config:
                result.append(live[place])
            place += 1
        result.append(element)
        if shared and element == shared[0]:
            del shared[0]
    return result + [element for element in live[place:] if element not in config]


def is_member(node: FieldSet) -> bool:
    return not node or _MARK in node


def _marked(node: FieldSet) -> FieldSet:
    return {_MARK: _LEAF, **node} if node else node


def union(fields: FieldSet, other: FieldSet) -> FieldSet:
    if not fields or not other:
        return fields or other
    result = dict(fields)
    for element, node in other.items():
        below = fields.get(element)
        if below is None:
            result[element] = node
        elif not below or not node:
            result[element] = _marked(below or node)
        else:
            result[element] = union(below, node)
    return dict(sorted(result.items())) if len(result) > len(fields) else result


def difference(fields: FieldSet, other: FieldSet) -> FieldSet:
    """`fields` without the members of `other`; the same object if it has none of them."""
    result = fields
    for element, node in other.items():
        if element == _MARK or element not in fields:
            continue
        below = fields[element]
        left = _reduced(below, node)
        if left is not below:
            result = dict(fields) if result is fields else result
            if left is None:
                del result[element]
            else:
                result[element] = left
    return result


def _reduced(below: FieldSet, node: FieldSet) -> FieldSet | None:
    """One node without the members of another; None if it has none left."""
    if not below:
        return None if is_member(node) else below
    left = difference(below, node)
    if _MARK in left and is_member(node):
        left = {element: inner for element, inner in left.items() if element != _MARK}
    elif left.keys() == {_MARK}:
        return _LEAF
    return left or None


def intersection(fields: FieldSet, other: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for element, node in fields.items():
        if element == _MARK or element not in other:
            continue
        there = other[element]
        both = intersection(node, there)
        if is_member(node) and is_member(there):
            result[element] = _marked(both)
        elif both:
            result[element] = both
    return result


def without(value: Any, fields: FieldSet, schema: Obj) -> Any:
    """`value` without the fields and items of a set; null when nothing is left."""
    if is_leaf(value, schema) or not fields:
        return value
    kept: list[tuple[str, Any]] = []
    for element, item, inner in _entries(value, schema):
        node = fields.get(element)
        if node is None:
            kept.append((element, item))
        elif not is_member(node):
            kept.append((element, without(item, node, inner)))
    if not kept:
        return None
    return {element[2:]: item for element, item in kept} if isinstance(value, dict) else [item for _, item in kept]


def with_named(fields: FieldSet, schema: Obj) -> FieldSet:
    """The set and every named field on the way to its members."""
    result: FieldSet = {}
    for element, node in fields.items():
        inner, named = child_of(schema, element[2:]) if element.startswith("f:") else (items_of(schema), False)
        below = with_named(node, inner)
        result[element] = _marked(below) if named else below
    return result


def in_order(fields: FieldSet, path: Path = ()) -> Iterator[Path]:
    """The paths of the members in the server's order: at each level first the members, then their children."""
    below = sorted((element, node) for element, node in fields.items() if element != _MARK)
    yield from ((*path, element) for element, node in below if is_member(node))
    for element, node in below:
        yield from in_order(node, (*path, element))


def shown(path: Path) -> str:
    """`.spec.template.spec.containers[name="web"].image`."""
    text = ""
    for element in path:
        kind, rest = element[:2], element[2:]
        if kind == "f:":
            text += f".{rest}"
        elif kind == "v:":
            text += f"[={rest}]"
        else:
            pairs = (f"{key}={json.dumps(value)}" for key, value in json.loads(rest).items())
            text += f"[{','.join(pairs)}]"
    return text


def is_set(value: Any) -> bool:
    """Whether it has the form of FieldsV1."""
    return isinstance(value, dict) and all(
        (key == "." or key[:2] in ("f:", "k:", "v:", "i:")) and is_set(inner) for key, inner in value.items()
    )
