"""The cached form of an object, in little memory.

A fresh object is reduced (managedFields, or everything but metadata) and then rebuilt from the cache: equal parts come
from a similar object, which is its own last version or one made from the same template, and repeated strings from a
table. So two objects may share parts; one more reason why they must not be changed in place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import orjson

from kubectl_ctrl.cache.readonly import read_only
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.model.managed_fields import reduce
from kubectl_ctrl.model.objects import PARTIAL_KIND, PARTIAL_VERSION, Obj
from kubectl_ctrl.model.resources import Resource

# Longer strings seldom repeat, and would be kept alive by the table.
_LONGEST = 128
_MOST_TEXTS = 20_000

_FREE_FORM = frozenset({("apps", "controllerrevisions")})

_Same = Callable[[Any, Any], bool]


class StringPool(dict[str, str]):
    """Each string once. A full table is emptied, so that unused strings do not pile up in it."""

    def __missing__(self, text: str) -> str:
        if len(text) > _LONGEST:
            return text
        if len(self) >= _MOST_TEXTS:
            self.clear()
        self[text] = text
        return text

    def __repr__(self) -> str:
        return f"StringPool({len(self)})"


class Projection:
    """Makes cached objects of decoded ones, alike for lists, watches and the answers of own writes."""

    def __init__(
        self, selection: Selection, *, managers: frozenset[str], texts: StringPool, read_only_objects: bool = False
    ) -> None:
        self._metadata_only = selection.metadata_only
        self._managers = managers
        self._texts = texts
        self._finish = read_only if read_only_objects else _as_it_is
        self._same: _Same = operator.eq if _typed(selection.resource) else _identical

    def of(self, fresh: Obj, like: Obj | None) -> Obj:
        """The cached form of an object that nobody else refers to; `like` itself when that is identical."""
        reduce(fresh, self._managers)
        if self._metadata_only:
            fresh = {"apiVersion": PARTIAL_VERSION, "kind": PARTIAL_KIND, "metadata": fresh["metadata"]}
        if like is None:
            return self._finish(_built(fresh, self._texts))
        if like == fresh and self._same(like, fresh):
            return like
        return self._finish(_rebuilt(fresh, like, self._texts, self._same))

    def of_shared(self, obj: Obj, like: Obj | None) -> Obj:
        """The cached form of an object that others refer to and may change: it is copied as a whole."""
        return self.of({**obj, "metadata": dict(obj["metadata"])}, like)

    def __repr__(self) -> str:
        what = "metadata" if self._metadata_only else "whole"
        return f"Projection({what}, managers={sorted(self._managers)}, {self._texts!r})"


def _typed(resource: Resource) -> bool:
    """Equal in Python is identical in JSON: in a built-in type no field is 1 now and true or 1.0 later.

    Custom resources have a group with a dot in its name; the API server refuses others.
    """
    return "." not in resource.group and (resource.group, resource.plural) not in _FREE_FORM


def _identical(a: Any, b: Any) -> bool:
    """Two values that are equal in Python are the same text in JSON: not 1 and true, nor 1 and 1.0."""
    try:
        return orjson.dumps(a, option=orjson.OPT_SORT_KEYS) == orjson.dumps(b, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # text that is not Unicode, or a number beyond 64 bits
        return False


def _as_it_is(obj: Obj) -> Obj:
    return obj


# The functions below run for every part of every object that arrives. They test the exact types of a JSON decoder, and
# repeat themselves a little, because a function call takes as long as the work of one.


def _built(value: Obj, texts: StringPool) -> Obj:
    """A deep copy with repeated strings shared."""
    out: Obj = {}
    for key, item in value.items():
        kind = type(item)
        if kind is str:
            out[texts[key]] = texts[item]
        elif kind is dict:
            out[texts[key]] = _built(item, texts)
        elif kind is list:
            out[texts[key]] = _built_items(item, texts)
        else:
            out[texts[key]] = item
    return out


def _built_items(items: list[Any], texts: StringPool) -> list[Any]:
    out: list[Any] = []
    for item in items:
        kind = type(item)
        if kind is dict:
            out.append(_built(item, texts))
        elif kind is str:
            out.append(texts[item])
        else:
            out.append(_built_items(item, texts) if kind is list else item)
    return out


def _rebuilt(value: Obj, like: Obj, texts: StringPool, same_: _Same) -> Obj:
    """A deep copy that takes every part that it can from `like`."""
    out: Obj = {}
    for key, item in value.items():
        kind = type(item)
        other = like.get(key)
        if kind is str:
            out[texts[key]] = other if item == other else texts[item]
        elif kind is dict:
            if item == other and same_(item, other):
                out[texts[key]] = other
            else:
                out[texts[key]] = (
                    _rebuilt(item, other, texts, same_) if isinstance(other, dict) else _built(item, texts)
                )
        elif kind is list:
            out[texts[key]] = _rebuilt_items(item, other, texts, same_)
        else:
            out[texts[key]] = item
    return out


def _rebuilt_items(items: list[Any], like: Any, texts: StringPool, same_: _Same) -> list[Any]:
    if not isinstance(like, list):
        return _built_items(items, texts)
    if items == like and same_(items, like):
        return like
    out: list[Any] = []
    for place, item in enumerate(items):
        other = like[place] if place < len(like) else None
        if type(item) is not dict:
            out += _built_items([item], texts)
        elif item == other and same_(item, other):
            out.append(other)
        else:
            out.append(_rebuilt(item, other, texts, same_) if isinstance(other, dict) else _built(item, texts))
    return out
