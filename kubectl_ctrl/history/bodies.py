"""The objects that attempts read or that writes returned, stored once for each form.

One version of an object has several forms: as stored in a cache, its metadata alone, as returned by a write. A replay
needs the exact one, including managedFields, so a form is identified by its content. The response of a subresource,
such as a Scale, is stored for replays alone. Secrets are not stored.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Callable

import orjson

from kubectl_ctrl.history.sql import query
from kubectl_ctrl.model.attempt import Attempt
from kubectl_ctrl.model.masking import is_secret, may_hold_secrets
from kubectl_ctrl.model.objects import PARTIAL_KIND, Key, Obj, uid_of, version_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.secrecy import Secrecy
from kubectl_ctrl.value import Struct

# A body is touched at most this often while attempts read it, so pruning keeps it this much longer.
USED_FOR = 600.0
# A bigger body is not stored; no body has row 0.
_BIGGEST = 1_000_000
_NOT_KEPT = 0

# Bits of the compression window, and zlib's memory level: more takes longer to set up than most objects to compress.
_WINDOW = 13
_MEMORY = 5

# Objects that stay in a cache are encoded once: this many are recognized by their identity.
_MOST_KNOWN = 5_000


class _Form(Struct):
    """An object in memory and its row. The reference keeps the id() of the object from being reused."""

    obj: Obj
    row: int
    seen: float


class Bodies:
    """The bodies of one run; `object_row` returns the row of an object by resource, key and UID."""

    def __init__(self, connection: sqlite3.Connection, object_row: Callable[[Resource, Key, str], int]) -> None:
        self._connection = connection
        self._object_row = object_row
        self._known: OrderedDict[int, _Form] = OrderedDict()

    def forget(self) -> None:
        self._known.clear()

    def of(self, attempt: Attempt, secrecy: Secrecy) -> bytes:
        """Store the objects of the attempt; the rows of those it read and of those its writes returned, as JSON."""
        at = attempt.start.started
        reads = [[self._row(read.resource, obj, at, secrecy) for obj in read.objects] for read in attempt.reads]
        answers = [
            _NOT_KEPT if wish.answer is None else self._row(wish.resource, wish.answer, at, secrecy)
            for wish in attempt.wishes
        ]
        return orjson.dumps([reads, answers]) if any(reads) or any(answers) else b""

    def _row(self, resource: Resource, obj: Obj, at: float, secrecy: Secrecy) -> int:
        known = self._known.get(id(obj))
        if known is not None and known.obj is obj and known.seen >= at - USED_FOR:
            return known.row
        row = _NOT_KEPT if is_secret(resource) else self._stored(resource, obj, at, secrecy)
        self._known[id(obj)] = _Form(obj, row, at)
        self._known.move_to_end(id(obj))
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return row

    def _stored(self, resource: Resource, obj: Obj, at: float, secrecy: Secrecy) -> int:
        text = _text(obj, secrecy)
        if len(text) > _BIGGEST or not uid_of(obj):
            return _NOT_KEPT
        meta = obj["metadata"]
        key = Key(meta.get("namespace") or "", meta.get("name") or "")
        values = {
            "object": self._object_row(resource, key, uid_of(obj)),
            "version": version_of(obj) if _is_whole(obj, resource) else "",
            "digest": hashlib.blake2b(text, digest_size=12).digest(),
            "seen": at,
            "data": _compressed(text),
        }
        row: int = self._connection.execute(query("add_body"), values).fetchone()[0]
        return row

    def __repr__(self) -> str:
        return f"Bodies(known={len(self._known)})"


def _is_whole(obj: Obj, resource: Resource) -> bool:
    """It is the object itself, not its Scale, which has the same UID and version."""
    return obj.get("kind", resource.kind) in (resource.kind, PARTIAL_KIND)


def _text(obj: Obj, secrecy: Secrecy) -> bytes:
    text = _dumped(obj)
    return _dumped(secrecy.kept(obj)) if may_hold_secrets(text) or secrecy.knows_any else text


def _compressed(text: bytes) -> bytes:
    deflate = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, _MEMORY)
    return deflate.compress(text) + deflate.flush()


def _dumped(obj: Obj) -> bytes:
    try:
        return orjson.dumps(obj)
    except TypeError:  # invalid Unicode, or a number beyond 64 bits
        return json.dumps(obj, separators=(",", ":")).encode()
