"""Protobuf bodies: the envelope, and the messages of the API, read by a table of their fields.

The table is made from the tags of Go's types. A result is the JSON that Go writes for the same object.
"""

from __future__ import annotations

import base64
import lzma
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any

import orjson

from kubectl_ctrl.model.objects import Obj

MAGIC = b"k8s\0"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ALTERNATIVES = ("jSONSchemas", "schema", "property", "allows")  # of the types that are one of several forms in JSON

Reader = Callable[[Any], Any]


class UnknownKind(ValueError):
    """The envelope is of a kind outside the API."""

    def __init__(self, api_version: str, kind: str) -> None:
        self.version, self.kind = api_version.rpartition("/")[2], kind
        where = f'version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
        super().__init__(f'no kind "{kind}" is registered for {where}')


def decode(raw: bytes, api_version: str, kind: str) -> Obj:
    """The object in an envelope, of the given type if the envelope names none; a ValueError has Go's words."""
    if not raw:
        raise ValueError("empty data")
    if not raw.startswith(MAGIC):
        raise ValueError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(_parts(raw[len(MAGIC) :]))
    named = {number: _text(value) for number, value in _parts(envelope.get(1, b""))}
    api_version, kind = named.get(1) or api_version, named.get(2) or kind
    kinds = _facts()["kinds"]
    message = kinds.get(f"{api_version} {kind}", kinds.get(kind))
    if message is None:
        raise UnknownKind(api_version, kind)
    return {"kind": kind, "apiVersion": api_version, **_read(message, envelope.get(2, b""))}


@cache
def _facts() -> Any:
    packed = resources.files("kubectl_ctrl.sandbox.kinds").joinpath("data/messages.json.xz").read_bytes()
    return orjson.loads(lzma.decompress(packed))


@cache
def _fields(message: int) -> dict[int, tuple[str, str, Reader, bool]]:
    """Each field's name, the first letter of its code, its reader, and whether it is omitted when empty."""
    found = {}
    for field in filter(None, _facts()["messages"][message].split(";")):
        number, name, code = field.split(" ")
        plain = code.rstrip("?")
        found[int(number)] = (name, plain[0], _reader(plain.strip("[]")), plain != code)
    return found


def _read(message: int, data: bytes) -> Obj:
    fields, result = _fields(message), dict[str, Any]()
    for number, value in _parts(data):
        if number not in fields:
            continue
        name, form, read, omitted = fields[number]
        decoded = read(value)
        if form == "[":
            result.setdefault(name, []).append(decoded)
        elif form == "{":
            result.setdefault(name, {}).update(decoded)
        elif not name:
            result.update(decoded)
        elif decoded or not omitted:
            result[name] = decoded
    return result


def _parts(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: an integer, or bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
                continue
            case 1:
                size = 8
            case 2:
                size, at = _varint(data, at)
            case 5:
                size = 4
            case other:
                raise ValueError(f"proto: illegal wireType {other}")
        if at + size > end:
            raise ValueError("unexpected EOF")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
        if shift >= 64:
            raise ValueError("proto: integer overflow")
    raise ValueError("unexpected EOF")


def _reader(code: str) -> Reader:
    match code[0]:
        case "m":
            number = int(code[1:])
            return lambda value: _read(number, value)
        case "A":
            return _alternative(int(code[1:]))
        case "{":
            return _entry(code[1:-1])
    return _READERS[code]


def _alternative(message: int) -> Reader:
    def read(value: bytes) -> Any:
        found = _read(message, value)
        return next((found[name] for name in _ALTERNATIVES if name in found), None)

    return read


def _entry(code: str) -> Reader:
    inner = _reader(code)

    def read(value: bytes) -> Obj:
        found = dict(_parts(value))
        return {_text(found.get(1, b"")): inner(found.get(2, 0 if code in "bi" else b""))}

    return read


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _integer(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _raw(value: bytes) -> Any:
    raw = dict(_parts(value)).get(1, b"")
    if raw.startswith(MAGIC):
        return decode(raw, "", "")
    return orjson.loads(raw) if raw else None


def _moment(value: bytes) -> tuple[datetime, int] | None:
    if not value:
        return None  # the zero time
    found = dict(_parts(value))
    return _EPOCH + timedelta(seconds=_integer(found.get(1, 0))), found.get(2, 0) // 1000


def _time(value: bytes) -> str | None:
    moment = _moment(value)
    return None if moment is None else f"{moment[0]:%Y-%m-%dT%H:%M:%S}Z"


def _micro_time(value: bytes) -> str | None:
    moment = _moment(value)
    return None if moment is None else f"{moment[0]:%Y-%m-%dT%H:%M:%S}.{moment[1]:06d}Z"


def _int_or_string(value: bytes) -> int | str:
    found = dict(_parts(value))
    return _text(found.get(3, b"")) if found.get(1) else _integer(found.get(2, 0))


def _number(value: bytes) -> int | float:
    number: float = struct.unpack("<d", value)[0]
    return int(number) if number.is_integer() else number


_READERS: dict[str, Reader] = {
    "s": _text,
    "b": bool,
    "i": _integer,
    "f": _number,
    "B": lambda value: base64.b64encode(value).decode(),
    "L": lambda value: [_text(item) for _, item in _parts(value)],
    "t": _time,
    "u": _micro_time,
    "R": _raw,
    "Q": lambda value: _text(dict(_parts(value)).get(1, b"0")),
    "I": _int_or_string,
}
