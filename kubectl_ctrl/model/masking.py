"""What may be kept of objects and texts, and what is hidden: the values of Secrets, and whatever looks like one.

By kind: of a Secret only metadata and the names of its entries stay. By name: the value under a key such as `password`,
`token` or `privateKey` is hidden in any object, while names and references (`secretName`, `tokenSecretRef`) are not.
The copy that `kubectl apply` leaves in an annotation is dropped everywhere.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import SECRETS, Resource

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MASK = "***"
# Stands in the metadata of an object of which something was hidden: it is not the one that was read.
MASKED = "kubectl-ctrl/masked"

_CONTENTS = ("data", "stringData")
# One of these stands in every key that is telling, and in the name of that annotation.
_SIGNS = (
    b"passw",
    b"passphrase",
    b"credential",
    b"key",
    b"token",
    b"secret",
    b"authorization",
    b"bearer",
    b"docker",
    b"kubeconfig",
    b"last-applied",
)
_TELLING = re.compile(
    r"(passw(or)?d|passphrase|credentials?|(access|secret|private|api|client|encryption|signing|shared)[-_.]?key"
    r"|token|secret|authorization|bearer|private[-_.]?key|\.dockerconfigjson|\.dockercfg|kubeconfig)$",
    re.IGNORECASE,
)
# Keys that end like the ones above and hold names, or ways to find them.
_NAMING = re.compile(r"(name|ref|reference|path|file|type|namespace|version|expirationSeconds)$", re.IGNORECASE)


def is_secret(resource: Resource | None) -> bool:
    return resource is not None and (resource.group, resource.plural) == (SECRETS.group, SECRETS.plural)


def is_telling(key: str) -> bool:
    """Whether the value under a key of that name is to be hidden."""
    return _TELLING.search(key) is not None and _NAMING.search(key) is None


def may_hold_secrets(text: bytes) -> bool:
    """Whether an object's JSON has anything in it that `masked` would look for; far quicker, and never wrongly no."""
    low = text.lower()
    return any(sign in low for sign in _SIGNS)


def masked(obj: Obj, resource: Resource | None = None) -> tuple[Obj, bool]:
    """An object without what may not be kept, sharing all else with it; and whether anything was hidden."""
    hider = _Hider()
    shown: Obj = hider.value(_without_copy(obj))
    if is_secret(resource) or (shown.get("kind") == "Secret" and shown.get("apiVersion") == "v1"):
        shown = {**shown, **{part: hider.all(shown[part]) for part in _CONTENTS if part in shown}}
    return shown, hider.hidden


class _Hider:
    """One walk through a value."""

    def __init__(self) -> None:
        self.hidden = False

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            walked = [self.value(part) for part in value]
            return walked if any(new is not old for new, old in zip(walked, value, strict=True)) else value
        return value

    def _object(self, obj: Obj) -> Obj:
        changed = {}
        for key, part in obj.items():
            shown = self.all(part) if isinstance(part, str) and is_telling(key) else self.value(part)
            if shown is not part:
                changed[key] = shown
        # {name: DB_PASSWORD, value: ...}, as containers name their environment.
        name = obj.get("name")
        if isinstance(obj.get("value"), str) and isinstance(name, str) and is_telling(name):
            changed["value"] = self.all(obj["value"])
        return {**obj, **changed} if changed else obj

    def all(self, value: Any) -> Any:
        """Every text below, hidden; the places stay."""
        if isinstance(value, dict):
            return {key: self.all(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self.all(part) for part in value]
        if value in (None, "", MASK):
            return value
        self.hidden = True
        return MASK


def _without_copy(obj: Obj) -> Obj:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if LAST_APPLIED not in annotations:
        return obj
    rest = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**obj, "metadata": {**obj["metadata"], "annotations": rest}}


def masked_difference(one: Difference) -> Difference:
    """A difference with what may not be shown hidden: by the last name on its path, and inside its values."""
    last = re.split(r"[.\[]", one.path.rstrip("]\"'"))[-1].strip("\"'")
    if LAST_APPLIED in one.path or is_telling(last):
        return Difference(path=one.path, old=_side(one.old), new=_side(one.new))
    old, new = (side if side in (ABSENT, HIDDEN) else _Hider().value(_bare(side)) for side in (one.old, one.new))
    return one if old is one.old and new is one.new else replace(one, old=old, new=new)


def _side(side: Any) -> Any:
    return side if side is ABSENT or side is None else HIDDEN


def _bare(side: Any) -> Any:
    if isinstance(side, dict) and LAST_APPLIED in side:
        return {key: value for key, value in side.items() if key != LAST_APPLIED}
    return side
