"""Applies a CRD's schema to a custom resource: prunes unknown fields, sets defaults, checks values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.testing.answers import Problem
from kubectl_ctrl.testing.fieldsets import by_element, element_of

_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
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


def defaulted(value: Any, schema: Obj) -> Any:
    """The value with the schema's defaults for missing fields."""
    if isinstance(value, list):
        return [defaulted(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, dict):
        return value
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    rest = additional if isinstance(additional, dict) else {}
    result = {key: defaulted(item, properties.get(key) or rest) for key, item in value.items()}
    for key, inner in properties.items():
        missing = key not in result or (result[key] is None and not inner.get("nullable"))
        if missing and "default" in inner:
            result[key] = defaulted(inner["default"], inner)
    return result


def problems(obj: Obj, schema: Obj) -> list[Problem]:
    """All violations of the schema in the object, in the order of the schema."""
    spec = {key: value for key, value in obj.items() if key not in _EVERY_OBJECT}
    required = [name for name in schema.get("required") or () if name not in _EVERY_OBJECT]
    return list(_problems(spec, {**schema, "type": "object", "required": required}, ""))


def _problems(value: Any, schema: Obj, path: str) -> Iterator[Problem]:
    if wrong := _type_problem(value, schema, path):
        yield wrong
        return
    if isinstance(value, dict):
        yield from _object_problems(value, schema, path)
    elif isinstance(value, list):
        yield from _list_problems(value, schema, path)
    else:
        yield from _scalar_problems(value, schema, path)


def _type_problem(value: Any, schema: Obj, path: str) -> Problem | None:
    if value is None and schema.get("nullable"):
        return None
    if schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, (int, str)) and not isinstance(value, bool)
        wanted = "integer,string"
    else:
        wanted = schema.get("type") or ""
        expected = _TYPES.get(wanted)
        fits = expected is None or (isinstance(value, expected) and (wanted == "boolean") == isinstance(value, bool))
        fits = fits or (wanted == "integer" and isinstance(value, float) and value.is_integer())
    if fits:
        return None
    given = _NAMES.get(type(value), "null")
    message = f'Invalid value: "{given}": {path} in body must be of type {wanted}: "{given}"'
    return Problem(field=path, reason="FieldValueTypeInvalid", message=message)


def untyped(value: Any, schema: Obj, path: str = "") -> Iterator[str]:
    """Where a value does not match its schema, in the words of server-side apply."""
    if _type_problem(value, schema, path) is not None:
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


def _object_problems(value: Obj, schema: Obj, path: str) -> Iterator[Problem]:
    for name in schema.get("required") or ():
        if name not in value:
            yield Problem(field=_join(path, name), reason="FieldValueRequired", message="Required value")
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        inner = properties.get(key) or (additional if isinstance(additional, dict) else {})
        yield from _problems(item, inner, _join(path, key))
    if len(value) > schema.get("maxProperties", len(value)):
        message = f"Too many: {len(value)}: must have at most {schema['maxProperties']} items"
        yield Problem(field=path, reason="FieldValueTooMany", message=message)


def _list_problems(value: list[Any], schema: Obj, path: str) -> Iterator[Problem]:
    for place, item in enumerate(value):
        yield from _problems(item, schema.get("items") or {}, f"{path}[{place}]")
    if len(value) > schema.get("maxItems", len(value)):
        message = f"Too many: {len(value)}: must have at most {schema['maxItems']} items"
        yield Problem(field=path, reason="FieldValueTooMany", message=message)
    if len(value) < schema.get("minItems", 0):
        message = f"Invalid value: {len(value)}: {path} in body should have at least {schema['minItems']} items"
        yield Problem(field=path, reason="FieldValueInvalid", message=message)
    if schema.get("x-kubernetes-list-type") in ("map", "set") and len(by_element(value, schema)) < len(value):
        seen: set[str] = set()
        for place, item in enumerate(value):
            element = element_of(item, schema)
            if element in seen:
                message = f"Duplicate value: {element[2:]}"
                yield Problem(field=f"{path}[{place}]", reason="FieldValueDuplicate", message=message)
            seen.add(element)


def _scalar_problems(value: Any, schema: Obj, path: str) -> Iterator[Problem]:
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(_quoted(item) for item in schema["enum"])
        message = f"Unsupported value: {_quoted(value)}: supported values: {supported}"
        yield Problem(field=path, reason="FieldValueNotSupported", message=message)
    for broken in _broken(value, schema):
        message = f"Invalid value: {_quoted(value)}: {path} in body {broken}"
        yield Problem(field=path, reason="FieldValueInvalid", message=message)
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        message = f"Too long: may not be more than {schema['maxLength']} bytes"
        yield Problem(field=path, reason="FieldValueTooLong", message=message)


def _broken(value: Any, schema: Obj) -> Iterator[str]:
    """The violated bounds, in the server's words."""
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield f"should be at least {schema['minLength']} chars long"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"should match '{schema['pattern']}'"
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
            yield f"should be greater than {'' if schema.get('exclusiveMinimum') else 'or equal to '}{low}"
        if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
            yield f"should be less than {'' if schema.get('exclusiveMaximum') else 'or equal to '}{high}"
        if schema.get("multipleOf") and value % schema["multipleOf"]:
            yield f"should be a multiple of {schema['multipleOf']}"


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
