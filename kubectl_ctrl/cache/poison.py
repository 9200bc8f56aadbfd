"""Checks objects before they enter the cache, so that no code behind it has to."""

from __future__ import annotations

from kubectl_ctrl.model.objects import Obj

# Fields of metadata that code reads without a check, and their types.
_SHAPES: tuple[tuple[str, type], ...] = (
    ("uid", str),
    ("generateName", str),
    ("labels", dict),
    ("annotations", dict),
    ("ownerReferences", list),
    ("finalizers", list),
    ("managedFields", list),
)


def flaw_of(obj: Obj) -> str:
    """The reason why the object cannot be cached, or "". Its name was checked by the decoder."""
    meta = obj["metadata"]
    for field, shape in _SHAPES:
        value = meta.get(field)
        if value is not None and not isinstance(value, shape):
            return f"metadata.{field} is a {type(value).__name__}"
    return ""
