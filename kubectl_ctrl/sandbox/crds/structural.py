"""Applies a CRD's schema to a custom resource: prunes unknown fields, and sets defaults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.crds import violations

_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})
_SMD_NAMES = {
    "object": "map",
    "array": "list",
    "string": "string",
    "boolean": "boolean",
    "integer": "numeric",
    "number": "numeric",
}
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def pruned(obj: Obj, schema: Obj) -> tuple[Obj, list[str]]:
    """The object without unknown fields, and their paths."""
    dropped: list[str] = []
    kept = _pruned({key: value for key, value in obj.items() if key not in _EVERY_OBJECT}, schema, "", dropped)
    return {**{key: obj[key] for key in obj if key in _EVERY_OBJECT}, **kept}, dropped


def _pruned(value: Any, schema: Obj, path: str, dropped: list[str]) -> Any:
    if isinstance(value, list):
        inner = schema.get("items") or {}
        return [_pruned(item, inner, f"{path}[{place}]", dropped) for place, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    embedded = _EVERY_OBJECT if schema.get("x-kubernetes-embedded-resource") else frozenset[str]()
    result: Obj = {}
    for key, item in value.items():
        inside = f"{path}.{key}" if path else key
        if key in properties:
            result[key] = _pruned(item, properties[key], inside, dropped)
        elif key in embedded:
            result[key] = item
        elif additional:
            result[key] = _pruned(item, additional, inside, dropped) if isinstance(additional, dict) else item
        elif schema.get("x-kubernetes-preserve-unknown-fields"):
            result[key] = item
        else:
            dropped.append(inside)
    return result


def pruned_value(value: Any, schema: Obj) -> Any:
    """A value below a schema without unknown fields."""
    return _pruned(value, schema, "", [])


def defaulted(value: Any, schema: Obj, *, nulls: bool = False) -> Any:
    """The value with the schema's defaults for missing fields, and without nulls that the schema does not allow.

    With `nulls` those without a default stay, for the check to find.
    """
    if isinstance(value, list):
        return [defaulted(item, schema.get("items") or {}, nulls=nulls) for item in value]
    if not isinstance(value, dict):
        return value
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    rest = additional if isinstance(additional, dict) else {}
    result: Obj = {}
    for key, item in value.items():
        inner = properties.get(key, rest)
        if item is not None or not inner or inner.get("nullable") or (nulls and inner.get("default") is None):
            result[key] = defaulted(item, inner, nulls=nulls)
    for key, inner in properties.items():
        if key not in result and inner.get("default") is not None:
            result[key] = defaulted(inner["default"], inner)
    return result


def untyped(value: Any, schema: Obj, path: str = "") -> Iterator[str]:
    """Where a value does not match its schema, in the words of server-side apply."""
    if violations.type_problem(value, schema, path) is not None:
        yield f"{path}: expected {_expected(value, schema)}"
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = _entry_schema(schema, key)
            if inner is None:
                yield f"{path}.{key}: field not declared in schema"
            else:
                yield from untyped(item, inner, f"{path}.{key}")
    elif isinstance(value, list):
        yield from _untyped_items(value, schema, path)


def _expected(value: Any, schema: Obj) -> str:
    wanted = _SMD_NAMES.get(schema.get("type", ""), "string")
    if wanted == "numeric":
        return f"numeric (int or float), got {_NAMES.get(type(value), 'null')}"
    return f"{wanted}, got &value.valueUnstructured{{Value:{json.dumps(value, separators=(',', ':'))}}}"


def _entry_schema(schema: Obj, key: str) -> Obj | None:
    """The schema of one entry of an object; None if the schema does not allow it."""
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    if key in properties:
        return dict(properties[key])
    if isinstance(additional, dict):
        return additional
    embedded = schema.get("x-kubernetes-embedded-resource") and key in _EVERY_OBJECT
    return {} if additional or embedded or schema.get("x-kubernetes-preserve-unknown-fields") or not schema else None


def _untyped_items(value: list[Any], schema: Obj, path: str) -> Iterator[str]:
    keys = schema.get("x-kubernetes-list-map-keys") or []
    seen: set[str] = set()
    for place, item in enumerate(value):
        inner, shown = schema.get("items") or {}, f"[{place}]"
        if keys and isinstance(item, dict):
            pairs = {key: item[key] for key in sorted(keys) if key in item}
            if not pairs:
                named = " ".join(_quoted(key) for key in keys)
                why = "associative list with keys has an element that omits all key fields"
                yield f"{path}: element {place}: {why} [{named}] (and doesn't have default values for any key fields)"
                return
            shown = "[" + ",".join(f"{key}={json.dumps(one)}" for key, one in pairs.items()) + "]"
        elif schema.get("x-kubernetes-list-type") == "set":
            shown = f"[={json.dumps(item)}]"
        if shown in seen:
            yield f"{path}: duplicate entries for key {shown}"
            return
        seen.add(shown)
        yield from untyped(item, inner, path + shown)


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
