"""Values of the model as JSON documents, and back.

The fields of the values are the format: a field at its default is omitted, and a missing field gets its default, so
that a new field needs no migration. Unknown fields, written by a later version, are ignored.
"""

from __future__ import annotations

import json
import zlib
from functools import cache, lru_cache
from typing import Any, TypeVar

import msgspec

from kubectl_ctrl.history.database import Damaged, loaded
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference, Marker
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value, replace

T = TypeVar("T", bound=Value)

# Markers of differences, which are no JSON values, as numbers.
_MARKS = {ABSENT: 1, HIDDEN: 2}
_MARKED = {mark: marker for marker, mark in _MARKS.items()}


def encoded(value: Value) -> bytes:
    """A value of the model as a document; the objects of an attempt are stored as bodies instead."""
    if isinstance(value, RecordedAttempt):
        value = replace(
            value,
            reads=tuple(replace(one, objects=()) for one in value.reads),
            wishes=tuple(replace(one, answer=None) for one in value.wishes),
        )
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:  # invalid Unicode
        return json.dumps(msgspec.to_builtins(value, enc_hook=_plain), separators=(",", ":")).encode()


def decoded(kind: type[T], document: bytes | str) -> T:
    """The value of a document; raises Damaged."""
    value: T
    try:
        value = _decoder(kind).decode(document)
    except msgspec.DecodeError:
        try:
            value = msgspec.convert(json.loads(document), kind, dec_hook=_taken)  # it accepts invalid Unicode
        except ValueError as error:
            raise Damaged(f"a {kind.__name__} cannot be understood") from error
    return value


def unpacked(data: bytes) -> Obj:
    """A stored object: zlib over JSON."""
    try:
        obj: Obj = loaded(zlib.decompress(data))
    except (zlib.error, ValueError) as error:
        raise Damaged("an object cannot be understood") from error
    return obj


@cache
def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind, dec_hook=_taken)


def _plain(value: Any) -> Any:
    if isinstance(value, Difference):
        marks = [_MARKS[side] if isinstance(side, Marker) else 0 for side in (value.old, value.new)]
        sides = [None if mark else side for mark, side in zip(marks, (value.old, value.new), strict=True)]
        return [value.path, *sides, *marks] if any(marks) else [value.path, *sides]
    if isinstance(value, Resource):  # as one string: a document names the same few types again and again
        scope = "" if value.namespaced else "cluster"
        return f"{value.group} {value.version} {value.plural} {value.kind} {scope}"
    raise TypeError(f"a {type(value).__name__} is not part of any document")


def _taken(kind: type[Any], plain: Any) -> Any:
    return _as_difference(plain) if kind is Difference else _as_resource(plain)


@lru_cache(1000)
def _as_resource(text: str) -> Resource:
    group, version, plural, kind, scope = str.split(text, " ")
    return Resource(group, version, plural, kind, not scope)


def _as_difference(plain: list[Any]) -> Difference:
    path, old, new, *marks = plain
    if marks:  # few differences have them, and this runs for every difference of a document
        old, new = (_MARKED.get(mark, side) for mark, side in zip(marks, (old, new), strict=True))
    return Difference(path=path, old=old, new=new)


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
