"""The results of JSON, merge and strategic merge patches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import apply_json, apply_merge, same
from kubectl_ctrl.testing import answers, managed
from kubectl_ctrl.testing.fieldsets import child_of, items_of
from kubectl_ctrl.testing.kinds import ServedKind

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def media_type(headers_type: str, kind: ServedKind) -> str:
    """The kind of the patch, if this resource type accepts it."""
    given = headers_type.partition(";")[0].strip()
    if kind.custom and given not in (JSON_PATCH, MERGE, APPLY):
        raise answers.unsupported_media([JSON_PATCH, MERGE, APPLY])
    if given not in (JSON_PATCH, MERGE, STRATEGIC, APPLY):
        raise answers.unsupported_media()
    return given


def patched(kind: ServedKind, old: Obj, body: Any, media: str) -> Obj:
    """The object after the patch; shares unchanged parts with `old`."""
    _check_form(body, media)
    try:
        if media == JSON_PATCH:
            new = apply_json(old, body)
        elif media == MERGE:
            new = apply_merge(old, body)
        else:
            new = strategic(old, body, managed.schema_of(kind))
    except UsageError as error:
        raise answers.unprocessable("the server rejected our request due to an error in our request") from error
    if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
        raise answers.bad_request("the patched object is unrecognized (must be of type object)")
    return new


def _check_form(body: Any, media: str) -> None:
    wanted, go = (list, "[]handlers.jsonPatchOp") if media == JSON_PATCH else (dict, "map[string]interface {}")
    if not isinstance(body, wanted):
        given = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(body), "number")
        raise answers.bad_request(f"error decoding patch: json: cannot unmarshal {given} into Go value of type {go}")


def strategic(old: Any, patch: Any, schema: Obj) -> Any:
    """A strategic merge that ignores $setElementOrder and $retainKeys."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            result[name] = [item for item in result.get(name) or () if item not in value]
        elif key.startswith("$"):
            continue
        elif value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
            result.pop(key, None)
        elif isinstance(value, list):
            result[key] = _strategic_list(result.get(key) or [], value, child_of(schema, key)[0])
        else:
            result[key] = strategic(result.get(key), value, child_of(schema, key)[0])
    return result


def _strategic_list(old: list[Any], patch: list[Any], schema: Obj) -> list[Any]:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return _in_order(old, patch, [*old, *(item for item in patch if item not in old)], lambda item: item)
        case "map":
            return _keyed_list(old, patch, schema["x-kubernetes-list-map-keys"][0], items_of(schema))
    return [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]


def _keyed_list(old: list[Obj], patch: list[Obj], key: str, schema: Obj) -> list[Obj]:
    if any(item == {"$patch": "replace"} for item in patch):
        return [item for item in patch if "$patch" not in item]
    result = list(old)
    for item in patch:
        place = next((at for at, there in enumerate(result) if same(there.get(key), item.get(key))), None)
        if item.get("$patch") == "delete":
            if place is not None:
                del result[place]
        elif place is None:
            result.append(strategic({}, item, schema))
        else:
            result[place] = strategic(result[place], item, schema)
    return _in_order(old, [item for item in patch if "$patch" not in item], result, lambda item: item.get(key))


def _in_order(old: list[Any], patch: list[Any], merged: list[Any], name: Callable[[Any], Any]) -> list[Any]:
    """`merged` in the order of the patch; an item outside it stays in front only where it was in front before."""
    before, given = [name(item) for item in old], [name(item) for item in patch]
    found = {name(item): item for item in merged}
    left = [one for one in found if one not in given]
    ordered = []
    for one in dict.fromkeys(given):
        while left and one in before and before.index(left[0]) < before.index(one):
            ordered.append(left.pop(0))
        ordered.append(one)
    return [found[one] for one in [*ordered, *left]]
