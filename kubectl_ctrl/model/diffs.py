"""Differences between two objects, and whether one contains the other.

Lists of objects are compared by the keys in the Kubernetes schemas (containers by name, conditions by type) if these
are unique; all other lists by position.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same, surely_same


class Marker(Enum):
    """The values of a Difference that are not JSON."""

    ABSENT = "absent"
    HIDDEN = "hidden"  # a secret value

    def __repr__(self) -> str:
        return f"<{self.value}>"


ABSENT = Marker.ABSENT
HIDDEN = Marker.HIDDEN


class Difference:
    """One path at which two objects differ; a missing value is ABSENT. Values are references.

    It is not a `Value`, because it is recorded as a list, with a special form for the markers.
    """

    __slots__ = ("new", "old", "path")

    def __init__(self, *, path: str, old: Any, new: Any) -> None:
        self.path: Final = path
        self.old: Final = old
        self.new: Final = new

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Difference):
            return NotImplemented
        return (self.path, self.old, self.new) == (other.path, other.old, other.new)

    def __hash__(self) -> int:
        return hash((self.path, self.old, self.new))

    def __repr__(self) -> str:
        return f"Difference(path={self.path!r}, old={self.old!r}, new={self.new!r})"


# Fields that change with every write.
BOOKKEEPING = frozenset({"metadata.managedFields", "metadata.resourceVersion", "metadata.generation"})

# The maximum number of differences below each top-level field; more are replaced by one of the whole field.
_MOST = 64

# The keys of lists by field name, from the x-kubernetes-list-map-keys of the built-in types.
_LIST_KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "claims": (("name",),),
    "conditions": (("type",),),
    "containers": (("name",),),
    "env": (("name",),),
    "ephemeralContainers": (("name",),),
    "hostAliases": (("ip",),),
    "imagePullSecrets": (("name",),),
    "initContainers": (("name",),),
    "matchConditions": (("name",),),
    "ownerReferences": (("uid",),),
    "podIPs": (("ip",),),
    "ports": (("containerPort", "protocol"), ("port", "protocol")),
    "resourceClaims": (("name",),),
    "schedulingGates": (("name",),),
    "secrets": (("name",),),
    "topologySpreadConstraints": (("topologyKey", "whenUnsatisfiable"),),
    "volumeDevices": (("devicePath",),),
    "volumeMounts": (("mountPath",),),
    "volumes": (("name",),),
    "webhooks": (("name",),),
}
_SETS = frozenset({"finalizers"})
_KEY_DEFAULTS = {"protocol": "TCP"}  # the schemas' defaults for key fields

# Any unique key is good enough to display a difference, but not to decide about a write.
_READABLE_KEYS = (("name",), ("type",), ("key",), ("id",), ("uid",), ("ip",))


def diff(
    old: Obj | None,
    new: Obj | None,
    *,
    ignore: frozenset[str] = BOOKKEEPING,
    keys_only: bool = False,
    of_old: bool = False,
) -> tuple[Difference, ...]:
    """All differences, in the order of the old object's fields, then of the new one's.

    A field with very many differences counts as one. `keys_only` is for objects with secrets: it hides all values.
    `of_old` compares only the fields that the old object has.
    """
    found = _Diff(ignore, keys_only, of_old)
    before = ABSENT if old is None else old
    after = ABSENT if new is None else new
    return tuple(found.between("", "", before, after))


def is_subset(desired: Any, live: Any, field: str = "") -> bool:
    """Whether `live` has all values of `desired`; it may have more.

    A null in `desired` stands for an absent value. Items of keyed lists must be in the same order, because it can
    matter (env). Lists without keys must have the same length. Quantities are compared as text.
    """
    if desired is None:
        return live is None
    if isinstance(desired, dict):
        return isinstance(live, dict) and all(is_subset(value, live.get(key), key) for key, value in desired.items())
    if not isinstance(desired, list):
        return same(desired, live)
    if not isinstance(live, list):
        return False
    if field in _SETS:
        return all(any(same(item, present) for present in live) for item in desired)
    for keys in _LIST_KEYS.get(field, ()):
        if found := _by_keys(keys, (desired, live)):
            return _ordered_subset(*found)
    return len(desired) == len(live) and all(map(is_subset, desired, live))


def _ordered_subset(desired: dict[Any, Any], live: dict[Any, Any]) -> bool:
    places = {key: place for place, key in enumerate(live)}
    last = -1
    for key, item in desired.items():
        place = places.get(key, -1)
        if place <= last or not is_subset(item, live[key]):
            return False
        last = place
    return True


def keyed(field: str, *lists: list[Any]) -> tuple[dict[Any, Any], ...] | None:
    """The items of the lists by a unique key, the schema's first; None if no key is unique in each of the lists."""
    for keys in (*_LIST_KEYS.get(field, ()), *_READABLE_KEYS):
        if (found := _by_keys(keys, lists)) is not None:
            return found
    return None


def _by_keys(keys: tuple[str, ...], lists: Sequence[list[Any]]) -> tuple[dict[Any, Any], ...] | None:
    result = []
    for items in lists:
        named: dict[Any, Any] = {}
        for item in items:
            name = _name(keys, item)
            if name is None or name in named:
                return None
            named[name] = item
        result.append(named)
    return tuple(result)


def _name(keys: tuple[str, ...], item: Any) -> tuple[Any, ...] | None:
    if not isinstance(item, dict):
        return None
    name = tuple(item.get(key, _KEY_DEFAULTS.get(key)) for key in keys)
    return name if all(isinstance(part, str | int) for part in name) else None


class _Diff:
    """One comparison. Its methods return the differences below `path`, whose last field is `field`."""

    def __init__(self, ignore: frozenset[str], keys_only: bool, of_old: bool) -> None:
        self._ignore = ignore
        self._keys_only = keys_only
        self._of_old = of_old

    def between(self, path: str, field: str, old: Any, new: Any) -> list[Difference]:
        if path in self._ignore:
            return []
        parts = self._parts(path, field, old, new)
        if parts is None:
            return [] if same(old, new) else [self._one(path, old, new)]
        found: list[Difference] = []
        for part_path, part_field, before, after in parts:
            found += self.between(part_path, part_field, before, after)
            # The top level has few fields, each with its own limit, so its limit is much higher.
            if len(found) > (_MOST if path else 16 * _MOST):
                return [self._one(path, old, new)]
        return found

    def _parts(self, path: str, field: str, old: Any, new: Any) -> Iterator[tuple[str, str, Any, Any]] | None:
        """The pairs to compare one level below; None if old and new are compared as a whole."""
        if self._keys_only:
            # An object on one side only is compared with {}, so that the names of its fields are reported.
            old, new = _opened(old, new), _opened(new, old)
        if isinstance(old, dict) and isinstance(new, dict):
            return self._of_objects(path, old, new)
        if isinstance(old, list) and isinstance(new, list):
            return self._of_lists(path, field, old, new)
        return None

    def _of_objects(self, path: str, old: Obj, new: Obj) -> Iterator[tuple[str, str, Any, Any]]:
        for key in old if self._of_old else [*old, *(key for key in new if key not in old)]:
            before, after = old.get(key, ABSENT), new.get(key, ABSENT)
            # Most fields of two versions are equal, and many are the same object in memory.
            if not surely_same(before, after):
                yield _joined(path, key), key, before, after

    def _of_lists(
        self, path: str, field: str, old: list[Any], new: list[Any]
    ) -> Iterator[tuple[str, str, Any, Any]] | None:
        for keys in (*_LIST_KEYS.get(field, ()), *_READABLE_KEYS):
            if (old or new) and (named := _by_keys(keys, (old, new))) is not None:
                return self._of_keyed(path, keys, *named) if _same_order(*named) else None
        if len(old) == len(new) and all(isinstance(item, dict | list) for item in (*old, *new)):
            return ((f"{path}[{place}]", "", *pair) for place, pair in enumerate(zip(old, new, strict=True)))
        return None

    def _of_keyed(
        self, path: str, keys: tuple[str, ...], old: dict[Any, Any], new: dict[Any, Any]
    ) -> Iterator[tuple[str, str, Any, Any]]:
        for name in old if self._of_old else [*old, *(name for name in new if name not in old)]:
            label = ",".join(f"{key}={part}" for key, part in zip(keys, name, strict=True))
            yield f"{path}[{label}]", "", old.get(name, ABSENT), new.get(name, ABSENT)

    def _one(self, path: str, old: Any, new: Any) -> Difference:
        if self._keys_only:
            old, new = (side if side is ABSENT else HIDDEN for side in (old, new))
        return Difference(path=path, old=old, new=new)


def _opened(side: Any, other: Any) -> Any:
    return {} if side is ABSENT and isinstance(other, dict) and other else side


def _same_order(old: dict[Any, Any], new: dict[Any, Any]) -> bool:
    """Whether the common items are in the same order; if not, the whole list counts as changed."""
    return [name for name in old if name in new] == [name for name in new if name in old]


def _joined(path: str, key: str) -> str:
    """`metadata.labels` and `app.kubernetes.io/name` make `metadata.labels["app.kubernetes.io/name"]`."""
    if not key.replace("_", "").replace("-", "").isalnum():
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key
