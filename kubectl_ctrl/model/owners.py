"""Owner references: the controller of an object, and valid owners."""

from __future__ import annotations

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.objects import Obj, key_of, namespace_of, uid_of


def controller_of(obj: Obj) -> Obj | None:
    """The owner reference with `controller: true`; there is at most one."""
    references: list[Obj] = obj["metadata"].get("ownerReferences") or []
    return next((reference for reference in references if reference.get("controller")), None)


def controlled_by(obj: Obj, uid: str) -> bool:
    """Whether the object with this UID is the controller; False if the UID is empty."""
    ref = controller_of(obj)
    return ref is not None and uid != "" and ref.get("uid") == uid


def owner_reference(owner: Obj, *, controller: bool = True, block: bool = True) -> Obj:
    """A reference to `owner`; with `block`, a foreground deletion of the owner waits for the child."""
    ref: Obj = {
        "apiVersion": owner.get("apiVersion") or "",
        "kind": owner.get("kind") or "",
        "name": owner["metadata"].get("name") or "",
        "uid": uid_of(owner),
    }
    missing = [field for field, value in ref.items() if not value]
    if missing:
        raise ControllerError(
            f"The object {ref['name']!r} cannot own anything, because it has no {', '.join(missing)}."
        )
    if controller:
        ref["controller"] = True
    if block:
        ref["blockOwnerDeletion"] = True
    return ref


def check_owner(owner: Obj, child: Obj) -> None:
    """ControllerError for an owner in another namespace, because the garbage collector would delete the child."""
    required, actual = namespace_of(owner), namespace_of(child)
    if not required or required == actual:
        return
    pair = f"{_title(owner)} cannot own {_title(child)}"
    if not actual:
        raise ControllerError(
            f"{pair}: an owner with a namespace cannot own an object without one.",
            next_step="Set the child's metadata.namespace, or own it from a cluster-scoped object.",
        )
    raise ControllerError(
        f"{pair}: owner and child must live in one namespace.",
        next_step=f"Create the child in {required!r}, or find it by a label and delete it through a finalizer.",
    )


def with_owner(child: Obj, owner: Obj) -> Obj:
    """A copy of `child` with `owner` as its controller; ControllerError if it has another, or must not have this."""
    check_owner(owner, child)
    ref = owner_reference(owner)
    present = controller_of(child)
    if present is not None and present.get("uid") != ref["uid"]:
        raise ControllerError(
            f"{_title(child)} is already controlled by {present.get('kind')} {present.get('name')!r}"
            f" (uid {present.get('uid')!r}) and cannot have a second controller."
        )
    others = [old for old in child["metadata"].get("ownerReferences") or () if old.get("uid") != ref["uid"]]
    return {**child, "metadata": {**child["metadata"], "ownerReferences": [*others, ref]}}


def _title(obj: Obj) -> str:
    meta = obj["metadata"]
    named = str(key_of(obj)) if meta.get("name") else f"{meta.get('generateName') or ''}*"
    return f"{obj.get('kind') or 'object'} {named!r}"
