"""Whether a write whose response was lost was carried out, judged from the live object. Pure."""

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


class WriteFate(StrEnum):
    DONE = "done"  # the object has the content of the write
    NOT_DONE = "not done"  # it was not carried out, and may be sent again
    REFUSED = "refused"  # the server would reject it now
    UNCLEAR = "unclear"


# The server sets these, whatever the body of a write contains.
_SET_BY_SERVER = frozenset(
    {"resourceVersion", "managedFields", "generation", "creationTimestamp", "selfLink", "generateName"}
)


def fate(order: Order, live: Obj | None) -> WriteFate:
    """The fate of the write, given the live object (None: it does not exist)."""
    match order.verb:
        case "create":
            return _created(order.body, live)
        case "delete":
            return _deleted(order.body, live)
        case "update":
            return _changed(order, live, _replaced(order.body, live, order.subresource))
        case "patch":
            return _changed(order, live, _patched(order.body, live, order.content_type))
    return WriteFate.UNCLEAR


def _created(sent: Any, live: Obj | None) -> WriteFate:
    """DONE if the object has all that was sent, including the owner; an object of the same name by others is REFUSED.

    A server may normalize values (a cpu of "1000m" becomes "1"), and then the object differs from what was sent. For a
    given name that is REFUSED: the caller handles AlreadyExists. For a generated name it must not be, because another
    name would be generated, and a second object created; there the owner decides.
    """
    if live is None:
        return WriteFate.NOT_DONE
    if is_subset(_without_zeros(_as_stored(sent), live), live):
        return WriteFate.DONE
    owner = controller_of(sent)
    if not sent["metadata"].get("generateName"):
        return WriteFate.REFUSED
    if owner is None:
        return WriteFate.UNCLEAR
    return WriteFate.DONE if controlled_by(live, str(owner.get("uid") or "")) else WriteFate.REFUSED


def _deleted(options: Any, live: Obj | None) -> WriteFate:
    """After a conflict: DONE if the object of that UID is deleted or terminating; else its version differed."""
    uid = (options.get("preconditions") or {}).get("uid")
    if live is None or uid_of(live) != uid or is_deleting(live):
        return WriteFate.DONE
    return WriteFate.REFUSED


def _changed(order: Order, live: Obj | None, holds: bool | None) -> WriteFate:
    """A write for one resourceVersion: if the object still has that version, it was not carried out."""
    if live is None:
        return WriteFate.REFUSED
    if version_of(live) == order.old_version:
        return WriteFate.NOT_DONE
    if holds is None:
        return WriteFate.UNCLEAR
    return WriteFate.DONE if holds else WriteFate.REFUSED


def _replaced(sent: Any, live: Obj | None, subresource: str) -> bool:
    """All of it must be equal, because a PUT also removes fields."""
    if live is None:
        return False
    if subresource == "status":
        return same(sent.get("status"), live.get("status"))
    return same(_writable(sent), _writable(live))


def _patched(patch: Any, live: Obj | None, content_type: str) -> bool | None:
    """Whether the patch would change nothing on the live object; None if that cannot be determined."""
    if live is None:
        return False
    bare = _writable(live)
    if isinstance(patch, list):
        return _json_patched([op for op in patch if op.get("path") != "/metadata/resourceVersion"], bare)
    if "strategic" in content_type and _has_directives(patch):
        return None
    wanted = _writable(patch)
    if "strategic" in content_type:
        return is_subset(wanted, bare)
    return same(apply_merge(bare, wanted), bare)


def _json_patched(patch: Sequence[Obj], live: Obj) -> bool | None:
    """Check each path separately. `test` operations are about the state before, so they are skipped."""
    steps = [op for op in patch if op.get("op") != "test"]
    paths = [str(op.get("path")) for op in steps]
    if len(dict.fromkeys(paths)) < len(paths) or any(op.get("op") not in _PLAIN_STEPS for op in steps):
        return None
    found = [_at(live, path) for path in paths]
    if any(value is _IN_A_LIST for value in found):
        return None
    return all(
        value is _ABSENT if op["op"] == "remove" else value is not _ABSENT and same(value, op.get("value"))
        for op, value in zip(steps, found, strict=True)
    )


def _at(node: Any, pointer: str) -> Any:
    """The value at a JSON pointer. Inside lists it proves nothing: adding twice adds two items, and indexes change."""
    for part in pointer.split("/")[1:]:
        if isinstance(node, list):
            return _IN_A_LIST
        if not isinstance(node, dict):
            return _ABSENT
        node = node.get(part.replace("~1", "/").replace("~0", "~"), _ABSENT)
    return node


def _has_directives(patch: Any) -> bool:
    if isinstance(patch, dict):
        return any(str(key).startswith("$") or value is None or _has_directives(value) for key, value in patch.items())
    return isinstance(patch, list) and any(map(_has_directives, patch))


def _writable(obj: Obj) -> Obj:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _SET_BY_SERVER}
    return {**obj, "metadata": metadata}


def _without_zeros(sent: Any, live: Any) -> Any:
    """The sent values without empty and zero ones that the server may omit."""
    if isinstance(sent, dict) and isinstance(live, dict):
        return {key: _without_zeros(value, live.get(key)) for key, value in sent.items() if value or key in live}
    if isinstance(sent, list) and isinstance(live, list) and len(sent) == len(live):
        return [_without_zeros(*pair) for pair in zip(sent, live, strict=True)]
    return sent


def _as_stored(sent: Obj) -> Obj:
    """The stored form of a new object: without status, and with a Secret's stringData as data."""
    stored = {key: value for key, value in _writable(sent).items() if key not in {"status", "stringData"}}
    stored["metadata"] = {key: value for key, value in stored["metadata"].items() if key != "uid"}
    if texts := sent.get("stringData"):
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        stored["data"] = {**(sent.get("data") or {}), **encoded}
    return stored
