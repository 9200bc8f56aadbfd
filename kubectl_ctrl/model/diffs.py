"""What differs between two objects, and whether one is contained in another.

Lists of objects are compared by the keys that the Kubernetes schemas give them (containers by name, conditions by
type) as long as these are unambiguous; all other lists by position.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same, surely_same


class Marker(Enum):
    """What stands in a Difference where no JSON value can."""

    ABSENT = "absent"
    HIDDEN = "hidden"  # there is a value, and it is not to be shown

    def __repr__(self) -> str:
        return f"<{self.value}>"


ABSENT = Marker.ABSENT
HIDDEN = Marker.HIDDEN


class Difference:
    """One place where two objects differ; ABSENT stands on the side that has nothing there. Values are by reference.

    No `Value`: a document has it as a list, in which the markers have a form of their own.
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


# Fields that change with every write and say nothing about it.
BOOKKEEPING = frozenset({"metadata.managedFields", "metadata.resourceVersion", "metadata.generation"})

# Below each top-level field at most so many differences are told apart; more become one, of the field that holds them.
_MOST = 64

# The name of a list's field -> the keys of its items, from the x-kubernetes-list-map-keys of the built-in types.
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

# To show a difference any key will do that tells the items apart; to decide about a write it would not.
_READABLE_KEYS = (("name",), ("type",), ("key",), ("id",), ("uid",), ("ip",))


def diff(
    old: Obj | None,
    new: Obj | None,
    *,
    ignore: frozenset[str] = BOOKKEEPING,
    keys_only: bool = False,
    of_old: bool = False,
) -> tuple[Difference, ...]:
    """Every difference, in the order of the old object's fields and then of the new one's.

    Complete and bounded: a field with very many differences inside counts as one difference. `keys_only` is for objects
    with secrets: it names the places and hides every value. `of_old` looks only at the places that the old object has.
    """
    found = _Diff(ignore, keys_only, of_old)
    before = ABSENT if old is None else old
    after = ABSENT if new is None else new
    return tuple(found.between("", "", before, after))


def is_subset(desired: Any, live: Any, field: str = "") -> bool:
    """Whether `live` already has everything that `desired` says; what `desired` does not mention is free.

    A null in `desired` asks for nothing. Items of keyed lists must stand in the same order, because it can matter
    (env); lists without keys must have the same length. Quantities are compared as the text that they are.
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
    if keyed := _keyed(field, desired, live):
        return _ordered_subset(*keyed)
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


def told_apart(field: str, *lists: list[Any]) -> tuple[dict[Any, Any], ...] | None:
    """The lists' items by whatever key tells them apart, the schema's first; None when nothing does in every list."""
    for keys in (*_LIST_KEYS.get(field, ()), *_READABLE_KEYS):
        if (found := _by_keys(keys, lists)) is not None:
            return found
    return None


def _keyed(field: str, *lists: list[Any]) -> tuple[dict[Any, Any], ...] | None:
    """The lists' items by their keys, when the field has keys and every item of every list is told apart by them."""
    for keys in _LIST_KEYS.get(field, ()):
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
    """One comparison; its methods give the differences below a place, `path`, whose last field is `field`."""

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
            # The top level has few fields, each bounded for itself; there only an absurd number is folded.
            if len(found) > (_MOST if path else 16 * _MOST):
                return [self._one(path, old, new)]
        return found

    def _parts(self, path: str, field: str, old: Any, new: Any) -> Iterator[tuple[str, str, Any, Any]] | None:
        """The pairs to compare one level down; None when old and new are compared as they are."""
        if self._keys_only:
            # One-sided objects are walked too, or the names of what came or went would stay unsaid.
            old, new = _opened(old, new), _opened(new, old)
        if isinstance(old, dict) and isinstance(new, dict):
            return self._of_objects(path, old, new)
        if isinstance(old, list) and isinstance(new, list):
            return self._of_lists(path, field, old, new)
        return None

    def _of_objects(self, path: str, old: Obj, new: Obj) -> Iterator[tuple[str, str, Any, Any]]:
        for key in old if self._of_old else [*old, *(key for key in new if key not in old)]:
            before, after = old.get(key, ABSENT), new.get(key, ABSENT)
            # Most of two versions of one object is equal, and often the same in memory.
            if not surely_same(before, after):
                yield _joined(path, key), key, before, after

    def _of_lists(
        self, path: str, field: str, old: list[Any], new: list[Any]
    ) -> Iterator[tuple[str, str, Any, Any]] | None:
        for keys in (*_LIST_KEYS.get(field, ()), *_READABLE_KEYS):
            if (old or new) and (named := _by_keys(keys, (old, new))) is not None:
                return self._of_keyed(path, keys, *named) if _in_step(*named) else None
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


def _in_step(old: dict[Any, Any], new: dict[Any, Any]) -> bool:
    """Whether the items that both have stand in the same order; if not, that is the difference, of the whole list."""
    return [name for name in old if name in new] == [name for name in new if name in old]


def _joined(path: str, key: str) -> str:
    """`metadata.labels` and `app.kubernetes.io/name` make `metadata.labels["app.kubernetes.io/name"]`."""
    if not key.replace("_", "").replace("-", "").isalnum():
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key
