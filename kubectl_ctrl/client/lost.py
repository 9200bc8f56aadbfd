"""What became of a write whose answer was lost, as far as the object itself can tell. Pure; others do the reading."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from kubectl_ctrl.client.order import Order
from kubectl_ctrl.model.diffs import is_subset
from kubectl_ctrl.model.objects import Obj, is_deleting, uid_of, version_of
from kubectl_ctrl.model.owners import controlled_by, controller_of
from kubectl_ctrl.model.patches import apply_merge, same

_PLAIN_STEPS = frozenset({"add", "replace", "remove"})
_ABSENT = object()
_IN_A_LIST = object()


class Fate(StrEnum):
    DONE = "done"  # the object is as the write wanted it
    NOT_DONE = "not done"  # the write did not come through, and may be sent again
    REFUSED = "refused"  # the object is such that the write could not be, or is no longer, right
    UNCLEAR = "unclear"


# Filled in or changed by the server with every write, whatever a body says about them.
_SERVERS_OWN = frozenset(
    {"resourceVersion", "managedFields", "generation", "creationTimestamp", "selfLink", "generateName"}
)


def fate(order: Order, live: Obj | None) -> Fate:
    """What the object that is there now (None: there is none) says about the write `order`."""
    match order.verb:
        case "create":
            return _created(order.body, live)
        case "delete":
            return _deleted(order.body, live)
        case "update":
            return _changed(order, live, _replaced(order.body, live, order.subresource))
        case "patch":
            return _changed(order, live, _patched(order.body, live, order.content_type))
    return Fate.UNCLEAR


def _created(sent: Any, live: Obj | None) -> Fate:
    """Ours when it holds what we sent, the owner among it; a namesake of somebody else is a refusal.

    A server may rewrite what we sent (a cpu of "1000m" becomes "1"). A given name is then refused: the object is there,
    and who asked for it knows how to go on. A drawn name must not be, or another one would be drawn: two objects.
    """
    if live is None:
        return Fate.NOT_DONE
    if is_subset(_told(_as_stored(sent), live), live):
        return Fate.DONE
    owner = controller_of(sent)
    if not sent["metadata"].get("generateName"):
        return Fate.REFUSED
    if owner is None:
        return Fate.UNCLEAR
    return Fate.DONE if controlled_by(live, str(owner.get("uid") or "")) else Fate.REFUSED


def _deleted(options: Any, live: Obj | None) -> Fate:
    """Asked only after a conflict: the object of that UID is gone or going, or its version was not the one we knew."""
    uid = (options.get("preconditions") or {}).get("uid")
    if live is None or uid_of(live) != uid or is_deleting(live):
        return Fate.DONE
    return Fate.REFUSED


def _changed(order: Order, live: Obj | None, holds: bool | None) -> Fate:
    """A write that insisted on a version: if that version still stands, it was not done."""
    if live is None:
        return Fate.REFUSED
    if version_of(live) == order.old_version:
        return Fate.NOT_DONE
    if holds is None:
        return Fate.UNCLEAR
    return Fate.DONE if holds else Fate.REFUSED


def _replaced(sent: Any, live: Obj | None, subresource: str) -> bool:
    """All of it must be equal: what a replacement left out would stay there unnoticed otherwise."""
    if live is None:
        return False
    if subresource == "status":
        return same(sent.get("status"), live.get("status"))
    return same(_without_servers_own(sent), _without_servers_own(live))


def _patched(patch: Any, live: Obj | None, content_type: str) -> bool | None:
    """Whether the patch, applied to what is there, changes nothing any more; None when that cannot be said."""
    if live is None:
        return False
    bare = _without_servers_own(live)
    if isinstance(patch, list):
        return _json_patched([op for op in patch if op.get("path") != "/metadata/resourceVersion"], bare)
    if "strategic" in content_type and _directed(patch):
        return None
    wanted = _without_servers_own(patch)
    if "strategic" in content_type:
        return is_subset(wanted, bare)
    return same(apply_merge(bare, wanted), bare)


def _json_patched(patch: Sequence[Obj], live: Obj) -> bool | None:
    """Each place is looked at for itself; tests spoke of the state before."""
    steps = [op for op in patch if op.get("op") != "test"]
    places = [str(op.get("path")) for op in steps]
    if len(dict.fromkeys(places)) < len(places) or any(op.get("op") not in _PLAIN_STEPS for op in steps):
        return None
    found = [_at(live, place) for place in places]
    if any(value is _IN_A_LIST for value in found):
        return None
    return all(_stands(op, value) for op, value in zip(steps, found, strict=True))


def _stands(op: Obj, value: Any) -> bool:
    if op["op"] == "remove":
        return value is _ABSENT
    return value is not _ABSENT and same(value, op.get("value"))


def _at(node: Any, pointer: str) -> Any:
    """The value at a pointer. In a list it cannot be told: adding twice adds two, and places move."""
    for part in pointer.split("/")[1:]:
        if isinstance(node, list):
            return _IN_A_LIST
        if not isinstance(node, dict):
            return _ABSENT
        node = node.get(part.replace("~1", "/").replace("~0", "~"), _ABSENT)
    return node


def _directed(patch: Any) -> bool:
    if isinstance(patch, dict):
        return any(str(key).startswith("$") or value is None or _directed(value) for key, value in patch.items())
    return isinstance(patch, list) and any(map(_directed, patch))


def _without_servers_own(obj: Obj) -> Obj:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _SERVERS_OWN}
    return {**obj, "metadata": metadata}


def _told(sent: Any, live: Any) -> Any:
    """What was sent, less the empty and zero values that a server may leave out of what it stores."""
    if isinstance(sent, dict) and isinstance(live, dict):
        return {key: _told(value, live.get(key)) for key, value in sent.items() if value or key in live}
    if isinstance(sent, list) and isinstance(live, list) and len(sent) == len(live):
        return [_told(*pair) for pair in zip(sent, live, strict=True)]
    return sent


def _as_stored(sent: Obj) -> Obj:
    """What a server would have kept of a new object: no status, and a Secret's plain text as data."""
    stored = {key: value for key, value in _without_servers_own(sent).items() if key not in {"status", "stringData"}}
    stored["metadata"] = {key: value for key, value in stored["metadata"].items() if key != "uid"}
    if texts := sent.get("stringData"):
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        stored["data"] = {**(sent.get("data") or {}), **encoded}
    return stored
