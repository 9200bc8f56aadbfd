"""The JSON of built-in objects as Go's types read and write it: known fields, checked values, empty values."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from kubectl_ctrl.model.objects import Obj

_NAMES = {dict: "object", list: "array", str: "string", bool: "bool"}
_PYTHON: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
_GO = {"string": "string", "boolean": "bool", "integer": "int64", "number": "float64"}
_ZEROS: dict[str, Any] = {"string": "", "boolean": False, "integer": 0, "number": 0}
_INTEGERS = {"int32": 31, "int64": 63}
_PLAIN_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[eE][+-]?\d+|[numkMGTPE]?)")
_NO_BASE64 = re.compile(r"[^A-Za-z0-9+/=\r\n]")
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class WrongType(Exception):
    """A value that does not fit its field; the text is that of Go's decoder."""


class Decoder:
    """Decodes one object; `unknown` has the paths of the fields that its type does not have."""

    def __init__(self) -> None:
        self.unknown: list[str] = []

    def decoded(self, value: Any, schema: Obj, path: str = "", where: str = "", go: str = "") -> Any:
        """A copy of a value without unknown fields and without the empty values that Go omits.

        `path` is its place in the words of the check for unknown fields, `where` in those of the decoder's other
        errors (`DeploymentSpec.spec.replicas`), and `go` the name of its type.
        """
        if "struct" in schema or "items" in schema or "additionalProperties" in schema:
            self._check(value, schema, where, go)
            if isinstance(value, list):
                return self._list(value, schema, path, where, go)
            return (
                self._struct(value, schema, path, where)
                if "struct" in schema
                else self._map(value, schema, path, where, go)
            )
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return value
        self._check(value, schema, where, go)
        if (check := _CHECKS.get(schema.get("format", ""))) is not None:
            check(value)
        return value

    def _check(self, value: Any, schema: Obj, where: str, go: str) -> None:
        wanted = schema.get("type", "")
        if wanted and not _fits(value, wanted, schema.get("format", "")):
            inside = f"Go struct field {where}" if where else "Go value"
            raise WrongType(
                f"json: cannot unmarshal {_shown(value, wanted)} into {inside} of type {go or _type(schema)}"
            )

    def _struct(self, value: Obj, schema: Obj, path: str, where: str) -> Obj:
        properties, types = schema["properties"], schema.get("types") or {}
        always, pointers = schema.get("always") or {}, schema.get("pointers") or ()
        name = schema["struct"].rpartition(".")[2]
        trail = where.partition(".")[2]
        result: Obj = {}
        for key, item in value.items():
            inner = properties.get(key)
            if inner is None:
                self.unknown.append(f"{path}.{key}" if path else key)
                continue
            if item is None:
                continue
            if _is_plain_text(item, inner):
                found = item  # nearly all values are, and need no path
            else:
                place = f"{name}.{trail}.{key}" if trail else f"{name}.{key}"
                found = self.decoded(item, inner, f"{path}.{key}" if path else key, place, types.get(key, ""))
            if found or key in pointers or not _is_dropped(found, inner, key in always):
                result[key] = found
        return result

    def _map(self, value: Obj, schema: Obj, path: str, where: str, go: str) -> Obj:
        inner, item_type = schema["additionalProperties"], go.partition("]")[2]
        if all(_is_plain_text(item, inner) for item in value.values()):
            return dict(value)
        return {
            key: _zero(inner) if item is None else self.decoded(item, inner, f"{path}.{key}", where, item_type)
            for key, item in value.items()
        }

    def _list(self, value: list[Any], schema: Obj, path: str, where: str, go: str) -> list[Any]:
        inner, item_type = schema["items"], go.partition("]")[2]
        return [
            _zero(inner) if item is None else self.decoded(item, inner, f"{path}[{place}]", where, item_type)
            for place, item in enumerate(value)
        ]


def _is_plain_text(value: Any, schema: Obj) -> bool:
    return isinstance(value, str) and schema.get("type") == "string" and "format" not in schema


def _fits(value: Any, wanted: str, form: str) -> bool:
    if wanted in ("integer", "number") and isinstance(value, bool):
        return False
    if wanted == "integer":
        limit = 1 << _INTEGERS.get(form, 63)
        return isinstance(value, int) and -limit <= value < limit
    return isinstance(value, _PYTHON[wanted])


def _shown(value: Any, wanted: str) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"number {value}" if wanted == "integer" else "number"
    return _NAMES[type(value)]


def _type(schema: Obj) -> str:
    """The Go type of a schema."""
    if "items" in schema:
        return f"[]{_type(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map[string]{_type(schema['additionalProperties'])}"
    form = schema.get("format", "")
    if form == "byte":
        return "[]uint8"
    special = {"quantity": "resource.Quantity", "date-time": "v1.Time", "micro-time": "v1.MicroTime"}
    return (
        schema.get("struct") or special.get(form) or (form if form in _INTEGERS else _GO.get(schema["type"], "object"))
    )


def _is_dropped(value: Any, schema: Obj, always: bool) -> bool:
    """Whether an empty value is omitted; one that is always there becomes null if it is a list or map."""
    if isinstance(value, dict):
        return "additionalProperties" in schema
    return isinstance(value, list) or not (always or schema.get("x-kubernetes-int-or-string"))


def _zero(schema: Obj) -> Any:
    if "struct" in schema:
        return {}
    return "0" if schema.get("format") == "quantity" else _ZEROS.get(schema.get("type", ""))


def filled(value: Any, schema: Obj) -> Any:
    """A copy with the fields that the JSON of a Go struct has even when they are empty."""
    if isinstance(value, list):
        inner = schema.get("items")
        return [filled(item, inner) for item in value] if inner else value
    if not isinstance(value, dict):
        return value
    if (values := schema.get("additionalProperties")) is not None:
        return {key: filled(item, values) for key, item in value.items()}
    properties = schema.get("properties")
    if properties is None:
        return value
    result = {
        key: filled(item, properties.get(key) or {}) if isinstance(item, (dict, list)) else item
        for key, item in value.items()
    }
    for key, zero in (schema.get("always") or {}).items():
        if key not in result:
            result[key] = filled({}, properties[key]) if zero == {} else zero
    return result


def empty(schema: Obj) -> Obj:
    """The JSON of an empty struct."""
    return dict(filled({}, schema))


def _check_quantity(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or not _QUANTITY.fullmatch(str(value)):
        raise WrongType(_QUANTITY_RULE)


def _check_time(value: str) -> None:
    try:
        aware = _PLAIN_TIME.fullmatch(value) or datetime.fromisoformat(value).tzinfo
    except ValueError:
        aware = None
    if not aware:
        raise WrongType(f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value}" as "2006"')


def _check_bytes(value: str) -> None:
    wrong = _NO_BASE64.search(value)
    if wrong or len(value) % 4:
        raise WrongType(f"illegal base64 data at input byte {wrong.start() if wrong else len(value)}")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "byte": _check_bytes,
    "quantity": _check_quantity,
    "date-time": _check_time,
    "micro-time": _check_time,
}
