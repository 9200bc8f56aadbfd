"""What may be wrong with an object that the client let through, so that nothing behind the cache has to look twice."""

from __future__ import annotations

from kubectl_ctrl.model.objects import Obj

# Fields of metadata that everyone reads as they are, and what they must be when they are there.
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
    """Why the object cannot be cached, "" when it can. That it has a name was checked when it was decoded."""
    meta = obj["metadata"]
    for field, shape in _SHAPES:
        value = meta.get(field)
        if value is not None and not isinstance(value, shape):
            return f"metadata.{field} is a {type(value).__name__}"
    return ""
