"""Values of the model as JSON documents, and back.

The fields of the values are the format: a field at its default is left out, and one that a document lacks takes its
default again, so that another field needs no migration. Fields that a document has and the value does not, because a
later version wrote it, are ignored.
"""

from __future__ import annotations

import json
import zlib
from functools import cache, lru_cache
from typing import Any, TypeVar

import msgspec

from kubectl_ctrl.history.raw_json import Damaged, loaded
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference, Marker
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import Recorded
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value, replace

T = TypeVar("T", bound=Value)

# In place of a value that is no JSON: the markers of differences.
_MARKS = {ABSENT: 1, HIDDEN: 2}
_MARKED = {mark: marker for marker, mark in _MARKS.items()}


def encoded(value: Value) -> bytes:
    """A value of the model as a document; the objects that an attempt read or was answered are bodies, not in it."""
    if isinstance(value, Recorded):
        value = _without_objects(value)
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:  # text that is no Unicode
        return json.dumps(msgspec.to_builtins(value, enc_hook=_plain), separators=(",", ":")).encode()


def decoded(kind: type[T], document: bytes | str) -> T:
    """The inverse; Damaged when it is none."""
    value: T
    try:
        value = _decoder(kind).decode(document)
    except msgspec.DecodeError:
        try:
            value = msgspec.convert(json.loads(document), kind, dec_hook=_taken)  # it takes text that is no Unicode
        except ValueError as error:
            raise Damaged(f"a {kind.__name__} cannot be understood") from error
    return value


def unpacked(data: bytes) -> Obj:
    """An object as it is kept: JSON under zlib."""
    try:
        obj: Obj = loaded(zlib.decompress(data))
    except (zlib.error, ValueError) as error:
        raise Damaged("an object cannot be understood") from error
    return obj


def _without_objects(attempt: Recorded) -> Recorded:
    return replace(
        attempt,
        reads=tuple(replace(one, objects=()) for one in attempt.reads),
        wishes=tuple(replace(one, answer=None) for one in attempt.wishes),
    )


@cache
def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind, dec_hook=_taken)


def _plain(value: Any) -> Any:
    if isinstance(value, Difference):
        return _difference(value)
    if isinstance(value, Resource):
        return _resource(value)
    raise TypeError(f"a {type(value).__name__} is not part of any document")


def _taken(kind: type[Any], plain: Any) -> Any:
    return _as_difference(plain) if kind is Difference else _as_resource(plain)


def _resource(one: Resource) -> str:
    """As one text: a document names the same few again and again."""
    return " ".join((one.group, one.version, one.plural, one.kind, "" if one.namespaced else "cluster"))


@lru_cache(1000)
def _as_resource(text: str) -> Resource:
    group, version, plural, kind, scope = str.split(text, " ")
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
    path, old, new, *marks = plain
    if marks:  # of few, and there are many of them
        old, new = (_MARKED.get(mark, side) for mark, side in zip(marks, (old, new), strict=True))
    return Difference(path=path, old=old, new=new)


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
