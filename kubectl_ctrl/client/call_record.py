"""The record of one call for observers: when it is sent, and when it has finished."""

from __future__ import annotations

from kubectl_ctrl.client.order import Order
from kubectl_ctrl.client.words import plain
from kubectl_ctrl.errors import ApiError, CtrlError
from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.value import replace

# The reason in the record of a write whose response was lost, and which a read found carried out.
FOUND_BY_READING = "FoundByReading"


def leaving(order: Order, audit_id: str, now: float) -> Call:
    """The record of a call that is about to be sent."""
    return Call(
        id=audit_id,
        verb=order.verb,
        resource=order.resource,
        namespace=order.namespace,
        name=order.name,
        subresource=order.subresource,
        started=now,
        dry_run=order.dry_run,
        old_version=order.old_version,
        before=order.before,
        sent=order.body,
    )


def succeeded(call: Call, *, took: float, sends: int, code: int | None, answer: Obj | None) -> Call:
    """The same call, finished; without a code it is a write that a read found carried out."""
    found = answer or {}
    identity = found.get("metadata") or {}
    if found.get("kind") == "Status":  # of a deleted object: it has the UID, but no resourceVersion
        identity = {"uid": (found.get("details") or {}).get("uid")}
    return replace(
        call,
        took=took,
        sends=sends,
        code=code,
        reason="" if code is not None else FOUND_BY_READING,
        uid=str(identity.get("uid") or ""),
        new_version=str(identity.get("resourceVersion") or ""),
        # Lists are too large for a record, and the cache has their objects.
        answer=None if call.verb in {"list", "watch"} else answer,
    )


def failed(call: Call, *, took: float, sends: int, code: int | None, error: BaseException) -> Call:
    """The same call, failed or interrupted."""
    # The message of any other error may contain secrets.
    message = plain(error.message) if isinstance(error, CtrlError) else f"It was interrupted by {type(error).__name__}."
    reason = error.reason if isinstance(error, ApiError) else ""
    code = error.code if isinstance(error, ApiError) else code
    return replace(call, took=took, sends=sends, code=code, reason=reason, error=message)
