"""Sets of fields, as server-side apply uses them: the set of an object, differences, and objects reduced by a set.

A path is a tuple of elements as FieldsV1 writes them: `f:name`, `k:{"name":"web"}`, `v:"finalizer"`. A schema says
which lists merge by keys and which values are atomic; without one, objects are granular and lists atomic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from operator import itemgetter
from sys import intern
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same, surely_same
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.value import Value, field

Path = tuple[str, ...]
FieldSet = set[Path]

ABSENT: Any = object()
_ELEMENT = itemgetter(0)


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


def _entries(value: Any, schema: Obj) -> Iterator[tuple[str, Any, Obj, bool]]:
    """Element, value, schema, and whether the entry itself is a member, for each entry of a granular value."""
    if isinstance(value, dict):
        for key, item in value.items():
            inner, named = child_of(schema, key)
            # The same few names are stored with every object.
            yield intern(f"f:{key}"), item, inner, not named or (isinstance(item, dict) and not item)
    else:
        for element, item in by_element(value, schema).items():
            yield element, item, items_of(schema), True


def fields_of(value: Any, schema: Obj) -> FieldSet:
    """The set that applying this value would own."""
    found: FieldSet = set()
    _collect(value, schema, (), found)
    return found


def _collect(value: Any, schema: Obj, path: Path, found: FieldSet) -> None:
    if is_leaf(value, schema):
        found.add(path)
        return
    for element, item, inner, itself in _entries(value, schema):
        _collect(item, inner, (*path, element), found)
        if itself:
            found.add((*path, element))


class Comparison(Value):
    """The differences between two objects; no path is in two of the sets."""

    removed: FieldSet = field(default_factory=set)
    modified: FieldSet = field(default_factory=set)
    added: FieldSet = field(default_factory=set)

    @property
    def taken(self) -> FieldSet:
        return self.modified | self.added

    def kept(self, keep: Callable[[FieldSet], FieldSet]) -> Comparison:
        return Comparison(*map(keep, self._parts()))

    def _parts(self) -> tuple[FieldSet, FieldSet, FieldSet]:
        return self.removed, self.modified, self.added


def compare(old: Any, new: Any, schema: Obj) -> Comparison:
    result = Comparison()
    _compare(old, new, schema, (), result)
    return result


def _add(new: Any, schema: Obj, path: Path, added: FieldSet) -> None:
    added.add(path)
    if _filled(new) and not is_leaf(new, schema):
        for element, item, inner, _ in _entries(new, schema):
            _add(item, inner, (*path, element), added)


def _compare(old: Any, new: Any, schema: Obj, path: Path, result: Comparison) -> None:
    if old is ABSENT:
        _add(new, schema, path, result.added)
        return
    shown = old if new is ABSENT or new is None else new  # null takes any form
    mixed = not (_empty(old) or _empty(new)) and type(old) is not type(new)
    if mixed or is_leaf(shown, schema) or not (_filled(old) or _filled(new)):
        if new is ABSENT:
            result.removed.add(path)
        elif not same(old, new):
            result.modified.add(path)
        return
    before = {} if _empty(old) else {entry[0]: entry for entry in _entries(old, schema)}
    after = {} if _empty(new) else {entry[0]: entry for entry in _entries(new, schema)}
    for element in before | after:
        inner = (after.get(element) or before[element])[2]
        left = before[element][1] if element in before else ABSENT
        right = after[element][1] if element in after else ABSENT
        if left is not right and not (isinstance(left, (dict, list)) and surely_same(left, right)):
            _compare(left, right, inner, (*path, element), result)
    if new is ABSENT:
        result.removed.add(path)


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


class Tree:
    """A field set as a tree of prefixes, to walk along an object."""

    __slots__ = ("below", "member")

    def __init__(self) -> None:
        self.member = False
        self.below: dict[str, Tree] = {}

    @staticmethod
    def of(paths: FieldSet) -> Tree:
        root = Tree()
        for path in paths:
            node = root
            for element in path:
                below = node.below.get(element)
                if below is None:
                    below = node.below[element] = Tree()
                node = below
            node.member = True
        return root


def without(value: Any, tree: Tree, schema: Obj) -> Any:
    """`value` without the fields and items of a set; null when nothing is left."""
    if is_leaf(value, schema) or not tree.below:
        return value
    kept: list[tuple[str, Any]] = []
    for element, item, inner, _ in _entries(value, schema):
        node = tree.below.get(element)
        if node is None:
            kept.append((element, item))
        elif not node.member:
            kept.append((element, without(item, node, inner)))
    if not kept:
        return None
    return {element[2:]: item for element, item in kept} if isinstance(value, dict) else [item for _, item in kept]


def with_named(paths: FieldSet, schema: Obj) -> FieldSet:
    """The set and every named field on the way to its members."""
    found = set(paths)
    for path in paths:
        here = schema
        for depth, element in enumerate(path[:-1], start=1):
            if element.startswith("f:"):
                here, named = child_of(here, element[2:])
                if named:
                    found.add(path[:depth])
            else:
                here = items_of(here)
    return found


def in_order(paths: FieldSet) -> list[Path]:
    """In the server's order: at each level first the members, then their children."""
    return list(_walk(Tree.of(paths), ()))


def _walk(tree: Tree, path: Path) -> Iterator[Path]:
    below = sorted(tree.below.items(), key=_ELEMENT)
    yield from ((*path, element) for element, node in below if node.member)
    for element, node in below:
        yield from _walk(node, (*path, element))


def with_paths(fields: Obj, paths: FieldSet) -> Obj:
    """FieldsV1 with more members: one that also has children is marked by a dot."""
    tree = Tree.of(paths)
    return _joined(fields, tree) if fields else _written(tree)


def _written(tree: Tree) -> Obj:
    below = sorted(tree.below.items(), key=_ELEMENT)
    return {element: _node(node.member, _written(node) if node.below else {}) for element, node in below}


def _joined(fields: Obj, tree: Tree) -> Obj:
    result = dict(fields)
    for element, node in tree.below.items():
        member, rest = _parts(fields, element)
        result[element] = _node(member or node.member, _joined(rest, node) if node.below else rest)
    return dict(sorted(result.items()))


def without_paths(fields: Obj, tree: Tree) -> Obj:
    """FieldsV1 without members; the same object if it has none of them."""
    result = fields
    for element, node in tree.below.items():
        if element in fields:
            member, rest = _parts(fields, element)
            left = without_paths(rest, node)
            result = dict(fields) if result is fields else result
            result[element] = _node(member and not node.member, left)
            if not left and (node.member or not member):
                del result[element]
    return result


def _parts(fields: Obj, element: str) -> tuple[bool, Obj]:
    """Whether an element itself is a member, and its children."""
    if element not in fields:
        return False, {}
    below = fields[element]
    return not below or "." in below, {key: value for key, value in below.items() if key != "."}


def _node(member: bool, children: Obj) -> Obj:
    return {".": {}, **children} if member and children else children


def decode_v1(fields: Obj) -> FieldSet:
    found: FieldSet = set()
    _decode(fields, (), found)
    return found


def _decode(fields: Obj, path: Path, found: FieldSet) -> None:
    for element, below in fields.items():
        if element == ".":
            found.add(path)
        elif below:
            _decode(below, (*path, element), found)
        else:
            found.add((*path, element))


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
