"""The JSON of built-in objects as Go's types read and write it: a reader for each struct, compiled from its schema.

An object is first read: checked, without unknown fields, and without those whose value is empty, unless they are
pointers or always there; quantities and times have one way of writing. Then it is completed.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache, partial
from threading import RLock
from typing import Any, NamedTuple

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.kinds import defaults, quantities, schemas

_JSON_NAMES = {dict: "object", list: "array", str: "string", bool: "bool"}
_BITS = {"int32": 31, "int64": 63}
_GO_TYPES = {"string": "string", "boolean": "bool", "integer": "int64", "number": "float64"}
_GO_FORMATS = {
    "byte": "[]uint8",
    "int32": "int32",
    "int64": "int64",
    "quantity": "resource.Quantity",
    "date-time": "v1.Time",
    "micro-time": "v1.MicroTime",
}
_PYTHON: dict[str, Any] = {"string": str, "boolean": bool, "integer": int, "number": (int, float)}
_ZEROS: dict[str, Any] = {"string": "", "boolean": False, "integer": 0, "number": 0}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_NO_BASE64 = re.compile(r"[^A-Za-z0-9+/=\r\n]")
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class WrongType(Exception):
    """A value that does not fit its field; the text is that of Go's decoder."""


def read(value: Any, schema: Obj, *path: str) -> tuple[Any, list[str]]:
    """A copy of an object, and the paths of its unknown fields. Raises WrongType."""
    walk = _Walk(list(path), [])
    return _struct(schema).read(value, walk), walk.unknown


def complete(obj: Obj, schema: Obj) -> Obj:
    """Add the server's defaults and the fields that are always there to an object that was read, in place."""
    _struct(schema).complete(obj)
    return obj


def empty(schema: Obj) -> Obj:
    """A struct in which nothing is set."""
    return _struct(schema).empty()


class _Step(NamedTuple):
    """One field, and the name of its struct."""

    struct: str
    field: str


class _Walk(NamedTuple):
    """The way to the value that is being read: fields, keys of maps, and indexes of lists."""

    steps: list[_Step | str | int]
    unknown: list[str]

    def path(self, last: str) -> str:
        """`spec.containers[0].image`."""
        texts = (f"[{one}]" if isinstance(one, int) else f".{_name(one)}" for one in (*self.steps, last))
        return "".join(texts).removeprefix(".")

    def wrong(self, value: Any, go: str, *, integer: bool = False) -> WrongType:
        fields = [step for step in self.steps if isinstance(step, _Step)]
        into = f"Go struct field {fields[-1].struct}.{'.'.join(one.field for one in fields)}" if fields else "Go value"
        given = _JSON_NAMES.get(type(value), f"number {value}" if integer else "number")
        return WrongType(f"json: cannot unmarshal {given} into {into} of type {go}")


def _name(step: _Step | str) -> str:
    return step if isinstance(step, str) else step.field


_Reader = Callable[[Any, _Walk], Any]
_Rule = Callable[[Any], None]


class _Field(NamedTuple):
    """How a field is read."""

    is_text: bool  # nearly all are, and need no reader
    is_kept: bool  # even if it is empty
    reader: _Reader
    step: _Step


class _Struct:
    def __init__(self, schema: Obj) -> None:
        self._schema = schema
        self._always = list((schema.get("always") or {}).items())
        self._fill = defaults.fill_of(schema)
        self._fields: dict[str, _Field] = {}
        self._rules: dict[str, _Rule] = {}

    def compile(self) -> None:
        """Apart from the constructor, since structs contain themselves."""
        types, name = self._schema.get("types") or {}, self._schema["struct"].partition(".")[2]
        kept = {*(self._schema.get("always") or ()), *(self._schema.get("pointers") or ())}
        for key, part in self._schema["properties"].items():
            text, reader = _is_text(part), _reader(part, types.get(key, ""))
            self._fields[key] = _Field(text, _is_kept(part, key in kept), reader, _Step(name, key))
            if (rule := _rule(part)) is not None:
                self._rules[key] = rule

    def read(self, value: Any, walk: _Walk) -> Obj:
        if not isinstance(value, dict):
            raise walk.wrong(value, self._schema["struct"])
        result: Obj = {}
        for key, item in value.items():
            field = self._fields.get(key)
            if field is None:
                walk.unknown.append(walk.path(key))
            elif field.is_text and isinstance(item, str):
                if item or field.is_kept:
                    result[key] = item
            elif item is not None:
                walk.steps.append(field.step)
                found = field.reader(item, walk)
                walk.steps.pop()
                if found or field.is_kept:
                    result[key] = found
        return result

    def complete(self, value: Obj) -> None:
        if self._fill is not None:
            self._fill(value)
        for key, zero in self._always:
            if key not in value:
                value[key] = {} if zero == {} else zero
        for key in self._rules.keys() & value.keys():
            if (item := value[key]) is not None:
                self._rules[key](item)

    def empty(self) -> Obj:
        properties = self._schema["properties"]
        return {key: empty(properties[key]) if zero == {} else zero for key, zero in self._always}


_LOCK = RLock()  # several servers may run in threads of one process
_STRUCTS: dict[str, _Struct] = {}
_BEGUN: dict[str, _Struct] = {}  # those that the thread with the lock is compiling


def _struct(schema: Obj) -> _Struct:
    name = schema["component"]
    if (struct := _STRUCTS.get(name)) is not None:
        return struct
    with _LOCK:
        struct = _STRUCTS.get(name) or _BEGUN.get(name)
        if struct is None:
            is_first = not _BEGUN
            struct = _BEGUN[name] = _Struct(schema)
            try:
                struct.compile()
                if is_first:
                    _STRUCTS.update(_BEGUN)
            finally:
                if is_first:
                    _BEGUN.clear()
    return struct


def _is_text(part: Obj) -> bool:
    return part.get("type") == "string" and "format" not in part


def _is_kept(part: Obj, marked: bool) -> bool:
    """Whether an empty value stays: of a list or map never, of a scalar if its field is marked."""
    if "items" in part or "additionalProperties" in part:
        return False
    return marked or "component" in part or "type" not in part or "x-kubernetes-preserve-unknown-fields" in part


# -- completing


def _rule(part: Obj) -> _Rule | None:
    """What completes the structs in a part; None if there is nothing to add."""
    if (inner := _inner(part)) is not None:
        below = _rule(inner)
        return below and partial(_complete_each, below)
    return _struct(part).complete if "component" in part and _acts(part, set()) else None


def _inner(part: Obj) -> Obj | None:
    """The schema of the items of a list or of the values of a map."""
    return part.get("items", part.get("additionalProperties"))


def _complete_each(rule: _Rule, value: Any) -> None:
    for item in value.values() if isinstance(value, dict) else value:
        rule(item)


def _acts(part: Obj, seen: set[str]) -> bool:
    """Whether any struct in a part is to be completed."""
    while (inner := _inner(part)) is not None:
        part = inner
    name = part.get("component", "")
    if not name or name in seen:
        return False
    seen.add(name)
    if part.get("always") or defaults.fill_of(part) is not None:
        return True
    return any(_acts(one, seen) for one in part["properties"].values())


# -- reading


def _reader(part: Obj, go: str) -> _Reader:
    """`go` is the name of the part's type in Go, where the schema does not tell it."""
    below = go.partition("]")[2]
    if "component" in part:
        return _struct(part).read
    if "items" in part:
        return _list_reader(part["items"], _reader(part["items"], below), go or _go_type(part))
    if "additionalProperties" in part:
        values = part["additionalProperties"]
        reader = _read_milli if values.get("format") == "quantity" else _reader(values, below)
        return _map_reader(values, reader, go or _go_type(part))
    if "format" in part and part["format"] in _FORMATS:
        text = _FORMATS[part["format"]]
        return _text_reader(text, go or _go_type(part)) if part.get("type") == "string" else text
    if "type" in part and "x-kubernetes-preserve-unknown-fields" not in part:
        return _scalar_reader(part, go or _go_type(part))
    return _read_any


def _go_type(part: Obj) -> str:
    """The Go type of a schema."""
    if "items" in part:
        return f"[]{_go_type(part['items'])}"
    if "additionalProperties" in part:
        return f"map[string]{_go_type(part['additionalProperties'])}"
    known = part.get("struct") or _GO_FORMATS.get(part.get("format", ""))
    return str(known or _GO_TYPES.get(part.get("type", ""), "object"))


def _zero(part: Obj) -> Any:
    if "component" in part:
        return {}
    return "0" if part.get("format") == "quantity" else _ZEROS.get(part.get("type", ""))


def _list_reader(part: Obj, reader: _Reader, go: str) -> _Reader:
    zero = _zero(part)

    def read_list(value: Any, walk: _Walk) -> Any:
        if not isinstance(value, list):
            raise walk.wrong(value, go)
        result = []
        for place, item in enumerate(value):
            walk.steps.append(place)
            result.append(reader(item, walk) if item is not None else {} if zero == {} else zero)
            walk.steps.pop()
        return result

    return read_list


def _map_reader(part: Obj, reader: _Reader, go: str) -> _Reader:
    zero, texts = _zero(part), _is_text(part)

    def read_map(value: Any, walk: _Walk) -> Any:
        if not isinstance(value, dict):
            raise walk.wrong(value, go)
        result = {}
        for key, item in value.items():
            if texts and isinstance(item, str):
                result[key] = item
                continue
            walk.steps.append(key)
            result[key] = reader(item, walk) if item is not None else {} if zero == {} else zero
            walk.steps.pop()
        return result

    return read_map


def _scalar_reader(part: Obj, go: str) -> _Reader:
    wanted, limit = part["type"], 1 << _BITS.get(part.get("format", ""), 63)
    python = _PYTHON.get(wanted, dict)

    def read_scalar(value: Any, walk: _Walk) -> Any:
        fits = isinstance(value, python) and (wanted == "boolean" or not isinstance(value, bool))
        if not fits or (wanted == "integer" and not -limit <= value < limit):
            raise walk.wrong(value, go, integer=wanted == "integer")
        return value

    return read_scalar


def _text_reader(text: Callable[[str], str], go: str) -> _Reader:
    def read_text(value: Any, walk: _Walk) -> Any:
        if not isinstance(value, str):
            raise walk.wrong(value, go)
        return text(value)

    return read_text


def _read_any(value: Any, _: _Walk) -> Any:
    return value


_read_int32 = _scalar_reader({"type": "integer", "format": "int32"}, "int32")


def _read_number_or_text(value: Any, walk: _Walk) -> Any:
    return value if isinstance(value, str) else _read_int32(value, walk)


def _read_schema_or_bool(value: Any, walk: _Walk) -> Any:
    if not isinstance(value, dict | bool):
        raise WrongType("boolean or JSON schema expected")
    return _read_schema(value, walk)


def _read_schema_or_list(value: Any, walk: _Walk) -> Any:
    """Anything else is nothing."""
    if isinstance(value, list):
        return [_read_schema(item, walk) for item in value]
    return _read_schema(value, walk) if isinstance(value, dict) else None


def _read_schema(value: Any, walk: _Walk) -> Any:
    """These types have decoders of their own, which do not report unknown fields."""
    return _struct(schemas.json_schema()).read(value, walk._replace(unknown=[])) if isinstance(value, dict) else value


def _read_quantity(value: Any, _: _Walk) -> Any:
    return _amount(value, -9)


def _read_milli(value: Any, _: _Walk) -> Any:
    """The quantities of resources have three digits at most."""
    return _amount(value, -3)


def _amount(value: Any, smallest: int) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or quantities.parse(str(value)) is None:
        raise WrongType(_QUANTITY_RULE)
    return quantities.canonical(str(value), smallest)


@lru_cache(1024)
def _moment(text: str) -> datetime:
    try:
        if _TIME.fullmatch(text):
            return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        pass
    raise WrongType(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"')


def _time(text: str) -> str:
    return _moment(text).isoformat(timespec="seconds") + "Z"


def _micro_time(text: str) -> str:
    return _moment(text).isoformat(timespec="microseconds") + "Z"


def _bytes(text: str) -> str:
    """Line ends count for nothing, and bits beyond the last byte are lost."""
    bare = text.replace("\r", "").replace("\n", "")
    try:
        return b2a_base64(a2b_base64(bare, strict_mode=True), newline=False).decode()
    except ValueError as error:
        wrong = _NO_BASE64.search(text)
        raise WrongType(f"illegal base64 data at input byte {wrong.start() if wrong else len(text)}") from error


_FORMATS: dict[str, Any] = {
    "quantity": _read_quantity,
    "int-or-string": _read_number_or_text,
    "schema-or-bool": _read_schema_or_bool,
    "schema-or-list": _read_schema_or_list,
    "date-time": _time,
    "micro-time": _micro_time,
    "byte": _bytes,
}
