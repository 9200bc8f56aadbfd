"""Values of the model as JSON documents, and back.

The fields of the dataclasses are the format: what stands at its default is left out, and what a document lacks takes
its default again, so that a field more needs no migration. How each field is turned is found out once, from its type.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import orjson
from msgspec import NODEFAULT
from msgspec.structs import fields

from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference, Marker
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value

T = TypeVar("T")

Turn = Callable[[Any], Any]

# In place of a value that is no JSON: the markers of differences.
_MARKS = {ABSENT: 1, HIDDEN: 2}
# Found out once for each dataclass.
_writers: dict[type[Any], Turn] = {}
_readers: dict[type[Any], Turn] = {}
_MARKED = {mark: marker for marker, mark in _MARKS.items()}


def encoded(value: Any) -> bytes:
    """A dataclass of the model as a document."""
    plain = _writer(type(value))(value)
    try:
        return orjson.dumps(plain)
    except TypeError:  # text that is no Unicode, or a number beyond 64 bits
        return json.dumps(plain, separators=(",", ":")).encode()


class Damaged(Exception):
    """What was read is not what was written: the disk's doing, or somebody's."""


def decoded(kind: type[T], document: bytes | str) -> T:
    """The inverse; Damaged when it is none."""
    try:
        value: T = _reader(kind)(loaded(document))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise Damaged(f"a {kind.__name__} cannot be understood") from error
    return value


def loaded(document: bytes | str) -> Any:
    try:
        return orjson.loads(document)
    except orjson.JSONDecodeError:
        return json.loads(document)  # it also takes what orjson could not write


def unpacked(data: bytes) -> Obj:
    """An object as it is kept: JSON under zlib."""
    try:
        obj: Obj = loaded(zlib.decompress(data))
    except (zlib.error, ValueError) as error:
        raise Damaged("an object cannot be understood") from error
    return obj


def _writer(kind: type[Any]) -> Turn:
    if kind not in _writers:
        _writers[kind] = _make_writer(kind)
    return _writers[kind]


def _reader(kind: type[Any]) -> Turn:
    if kind not in _readers:
        _readers[kind] = _make_reader(kind)
    return _readers[kind]


def _make_writer(kind: type[Any]) -> Turn:
    """Turns a dataclass into a dict of what differs from its defaults."""
    hints = get_type_hints(kind)
    known = []
    for one in fields(kind):
        if _by_reference(one.name, kind):
            continue
        default = one.default if one.default_factory is NODEFAULT else one.default_factory()
        known.append((one.name, default, _turn(hints[one.name], _write_one)))

    def write(value: Any) -> dict[str, Any]:
        found = {}
        for name, default, turn in known:
            part = getattr(value, name)
            if part is default or part == default:
                continue
            found[name] = part if turn is None else turn(part)
        return found

    return write


def _make_reader(kind: type[Any]) -> Turn:
    hints = get_type_hints(kind)
    turns = {name: _turn(hint, _read_one) for name, hint in hints.items()}
    known = [(name, turn) for name, turn in turns.items() if turn is not None]
    names = frozenset(kind.__struct_fields__)

    def read(plain: dict[str, Any]) -> Any:
        # What a later version of the same schema added is not ours to understand.
        if not plain.keys() <= names:
            plain = {name: part for name, part in plain.items() if name in names}
        for name, turn in known:
            if name in plain:
                plain[name] = turn(plain[name])
        return kind(**plain)

    return read


def _by_reference(name: str, kind: type[Any]) -> bool:
    """Objects that values hold by reference are kept as bodies, or not at all."""
    return name in _REFERENCES.get(kind.__name__, ())


_REFERENCES = {"Call": ("before", "sent", "answer"), "Read": ("objects",), "Wish": ("answer",)}


def _turn(hint: Any, one: Callable[[Any], Turn | None]) -> Turn | None:
    """How a value of this type is turned; None where it is its own document."""
    if get_origin(hint) in (Union, UnionType):
        inner = [part for part in get_args(hint) if part is not NoneType]
        turn = _turn(inner[0], one) if len(inner) == 1 else None
        return None if turn is None else lambda value: None if value is None else turn(value)
    if get_origin(hint) is tuple:
        return _tuple_turn(get_args(hint), one)
    return one(hint) if isinstance(hint, type) else None


def _tuple_turn(parts: tuple[Any, ...], one: Callable[[Any], Turn | None]) -> Turn:
    shape: Callable[[Any], Any] = tuple if one is _read_one else list
    if parts[-1] is Ellipsis:
        turn = _turn(parts[0], one)
        return shape if turn is None else lambda values: shape(map(turn, values))
    turns = [_turn(part, one) for part in parts]
    return lambda values: shape(
        value if turn is None else turn(value) for turn, value in zip(turns, values, strict=True)
    )


def _write_one(kind: type[Any]) -> Turn | None:
    if kind is Difference:
        return _difference
    if kind is Resource:
        return _resource
    if issubclass(kind, Value):
        return _writer(kind)
    if issubclass(kind, tuple):
        return list
    if issubclass(kind, Enum):
        return lambda value: value.value
    return bytes.decode if kind is bytes else None


def _read_one(kind: type[Any]) -> Turn | None:
    if kind is Difference:
        return _as_difference
    if kind is Resource:
        return _as_resource
    if issubclass(kind, Value):
        return _reader(kind)
    if issubclass(kind, tuple):
        return lambda plain: kind(*plain)
    if issubclass(kind, Enum):
        return {member.value: member for member in kind}.__getitem__
    return str.encode if kind is bytes else None


@lru_cache(1000)
def _resource_text(group: str, version: str, plural: str, kind: str, namespaced: bool) -> str:
    return " ".join((group, version, plural, kind, "" if namespaced else "cluster"))


def _resource(one: Resource) -> str:
    """As one text: a document names the same few again and again."""
    return _resource_text(one.group, one.version, one.plural, one.kind, one.namespaced)


@lru_cache(1000)
def _as_resource(text: str) -> Resource:
    group, version, plural, kind, scope = text.split(" ")
    return Resource(group, version, plural, kind, not scope)


def _difference(one: Difference) -> list[Any]:
    """The path, both sides, and which of them are markers."""
    old, new = one.old, one.new
    marks = _mark(old), _mark(new)
    if marks == (0, 0):
        return [one.path, old, new]
    return [one.path, None if marks[0] else old, None if marks[1] else new, *marks]


def _mark(side: Any) -> int:
    return _MARKS[side] if isinstance(side, Marker) else 0


def _as_difference(plain: list[Any]) -> Difference:
    if len(plain) == 3:  # nearly always, and there are many of them
        return Difference(path=plain[0], old=plain[1], new=plain[2])
    path, old, new, *marks = plain
    old, new = (_MARKED.get(mark, side) for mark, side in zip(marks, (old, new), strict=True))
    return Difference(path=path, old=old, new=new)
