"""Strategic merge patches: lists merge by the keys that the schema declares, and directives replace, delete or sort.

A property's schema names its merge key in x-kubernetes-patch-merge-key and its strategies, separated by commas, in
x-kubernetes-patch-strategy. Neither the object nor the patch is changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.fields.fieldsets import ABSENT, child_of, items_of

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"
_GO_TYPES = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", int: "int64"}


def merged(old: Obj, patch: Obj, schema: Obj) -> Obj:
    """The object after the patch; raises the refusal of a patch with a wrong directive."""
    if _DIRECTIVE in patch:
        return _directed(patch)
    result, rest = _retained(old, patch), {key: value for key, value in patch.items() if key != _RETAIN}
    for key in patch:
        if key.startswith(_ORDER):
            _merge_ordered(result, rest, key.removeprefix(_ORDER), rest.pop(key), schema)
    for key, value in rest.items():
        name = key.removeprefix(_DELETE)
        merge = _merged_value(result.get(name, ABSENT), value, child_of(schema, name)[0], deleting=name != key)
        if merge is ABSENT:
            result.pop(name, None)
        else:
            result[name] = merge
    return result


def _merged_value(old: Any, patch: Any, schema: Obj, *, deleting: bool) -> Any:
    if patch is None:
        return ABSENT
    if isinstance(old, dict) and isinstance(patch, dict):
        return patch if "replace" in _strategies(schema) else merged(old, patch, schema)
    if isinstance(old, list) and isinstance(patch, list):
        return _merged_list(old, patch, schema, deleting=True) if deleting else _merged_slice(old, patch, schema)
    return old if deleting else _plain(patch)


def _directed(patch: Obj) -> Obj:
    """The result of a map with a directive about itself."""
    match patch[_DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
    raise _bad_directive(patch)


def _bad_directive(patch: Obj) -> Refusal:
    return answers.unparsed(f"unknown patch type: {_go(patch[_DIRECTIVE])} in map: {_go(patch)}")


def _plain(value: Any) -> Any:
    """A new value, without directives and nulls; ABSENT if it is a directive itself."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return ABSENT
        entries = ((key, _plain(item)) for key, item in value.items() if item is not None)
        return {key: item for key, item in entries if item is not ABSENT}
    if isinstance(value, list):
        return [item for item in map(_plain, value) if item is not ABSENT]
    return value


def _strategies(schema: Obj) -> list[str]:
    return str(schema.get("x-kubernetes-patch-strategy", "")).split(",")


def _retained(old: Obj, patch: Obj) -> Obj:
    """A copy of the object with only the keys of a $retainKeys directive, if there is one."""
    if _RETAIN not in patch:
        return dict(old)
    names = patch[_RETAIN]
    given = [
        key
        for key, value in patch.items()
        if not (key == _RETAIN or value is None or key.startswith((_DELETE, _ORDER)))
    ]
    if not isinstance(names, list) or any(key not in names for key in given):
        raise answers.bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in old.items() if key in names}


# -- lists


def _merge_ordered(result: Obj, patch: Obj, name: str, order: Any, schema: Obj) -> None:
    """Merge one list in the order of its directive; removes it from the patch."""
    inner = child_of(schema, name)[0]
    old, given, key = result.get(name, ABSENT), patch.get(name, ABSENT), inner.get("x-kubernetes-patch-merge-key", "")
    for value in (order, old, given):
        if value is not ABSENT and not isinstance(value, list):
            raise answers.unparsed(_bad_type([], value))
    _check_order([] if given is ABSENT else given, order, key)
    if old is ABSENT and given is ABSENT:
        return
    if given is ABSENT:
        found = old
    else:
        found = _plain(given) if old is ABSENT else _merged_slice(old, given, inner)
        del patch[name]
    before = [] if old is ABSENT else old
    _check_elements(before, [] if given is ABSENT else given)
    result[name] = _sorted(found, order, before, key)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Raises a refusal unless the items of the patch are in the order of its directive."""
    if not patch or not order:
        return
    names = iter([_value_of(item, key) for item in order])
    for item in patch:
        if isinstance(item, dict) and _DIRECTIVE in item:
            continue
        wanted = _value_of(item, key)
        if not any(same(name, wanted) for name in names):
            why = f"The order in patch list:\n{_go(patch)}\n doesn't match $setElementOrder list:\n{_go(order)}\n"
            raise answers.unparsed(why)


def _merged_slice(old: list[Any], patch: list[Any], schema: Obj) -> list[Any]:
    return _merged_list(old, patch, schema) if "merge" in _strategies(schema) else patch


def _merged_list(old: list[Any], patch: list[Any], schema: Obj, *, deleting: bool = False) -> list[Any]:
    if not old and not patch:
        return old
    if _check_elements(old, patch) is not dict:
        if deleting:
            return [item for item in old if item not in patch]
        return _sorted(list(dict.fromkeys([*old, *patch])), patch, old, "")
    key = schema.get("x-kubernetes-patch-merge-key", "")
    if not key:
        raise answers.unparsed("cannot merge lists without merge key for")
    old, patch = _without_directives(old, patch, key)
    found = list(old)
    for item in patch:
        place = _place(found, _value_of(item, key), key)
        if place < 0:
            found.append(item)
        else:
            found[place] = merged(found[place], item, items_of(schema))
    return _sorted(found, patch, old, key)


def _without_directives(old: list[Obj], patch: list[Obj], key: str) -> tuple[list[Obj], list[Obj]]:
    """The stored items that no directive deletes or replaces, and the other items of the patch."""
    kept = [item for item in patch if _DIRECTIVE not in item]
    replaced = False
    for item in patch:
        match item.get(_DIRECTIVE):
            case None:
                pass
            case "delete":
                name = _value_of(item, key)
                old = [there for there in old if key not in there or not same(there[key], name)]
            case "replace":
                replaced = True
            case "merge":
                raise answers.unparsed("merging lists cannot yet be specified in the patch")
            case _:
                raise _bad_directive(item)
    return (kept, []) if replaced else (old, kept)


def _check_elements(*lists: list[Any]) -> type:
    """The type of all items."""
    kinds = list(dict.fromkeys(type(item) for items in lists for item in items))
    if not kinds:
        raise answers.unparsed("no elements in any of the given slices")
    if kinds[0] is list:
        raise answers.unprocessable("the server rejected our request due to an error in our request")
    if len(kinds) > 1:
        raise answers.unparsed(f"list element types are not identical: {_go(list(lists))}")
    return kinds[0]


def _sorted(found: list[Any], order: list[Any], before: list[Any], key: str) -> list[Any]:
    """The items that `order` names in its order, and between them the others in the order they had before."""
    named: list[Any] = []
    others: list[Any] = []
    for item in found:
        (named if _place(order, _value_of(item, key), key) >= 0 else others).append(item)
    for item in order:
        _value_of(item, key)  # each must have one
    named, others = _placed(named, order, key), _placed(others, before, key)
    result: list[Any] = []
    while named and others:
        left = _place(before, _value_of(others[0], key), key)
        right = _place(before, _value_of(named[0], key), key)
        result.append((others if 0 <= left < right else named).pop(0))
    return [*result, *named, *others]


def _placed(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """The items in this order. An item outside it goes to the front, as in the server's insertion sort."""
    result: list[Any] = []
    for item in items:
        mine, at = _place(order, _value_of(item, key), key), len(result)
        while at:
            other = _place(order, _value_of(result[at - 1], key), key)
            if mine >= 0 and 0 <= other <= mine:
                break
            at -= 1
        result.insert(at, item)
    return result


def _place(items: list[Any], name: Any, key: str) -> int:
    """The index of the item with this value of the merge key, or of this value; -1 without one."""
    for place, item in enumerate(items):
        if key and not isinstance(item, dict):
            raise answers.unparsed(f"value for key {place} is not a map")
        if (not key or key in item) and same(item[key] if key else item, name):
            return place
    return -1


def _value_of(item: Any, key: str) -> Any:
    """The value of the merge key, or the item itself in a list of plain values."""
    if not key:
        return item
    if not isinstance(item, dict):
        raise answers.unparsed(_bad_type({}, item))
    if key not in item:
        raise answers.unparsed(f"map: {_go(item)} does not contain declared merge key: {key}")
    return item[key]


# -- the server's words


def _bad_type(expected: Any, actual: Any) -> str:
    names = [_GO_TYPES.get(type(value), "float64") for value in (expected, actual)]
    return f"expected a {names[0]}, but received a {names[1]}"


def _go(value: Any) -> str:
    """A value as Go prints it."""
    match value:
        case None:
            return "<nil>"
        case Mapping():
            return "map[" + " ".join(f"{key}:{_go(item)}" for key, item in sorted(value.items())) + "]"
        case list():
            return "[" + " ".join(map(_go, value)) + "]"
        case str():
            return value
    return json.dumps(value)
