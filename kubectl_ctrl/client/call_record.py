"""The record of one call, for observers: as it leaves, and as it has ended."""

from __future__ import annotations

from kubectl_ctrl.client.order import Order
from kubectl_ctrl.client.words import plain
from kubectl_ctrl.errors import ApiError, CtrlError
from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.value import replace

# The reason in the record of a write whose answer was lost and that a read found done.
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
    """The same call, ended well; without a code it is a write that a read found done."""
    uid, version = _identity(answer or {})
    return replace(
        call,
        took=took,
        sends=sends,
        code=code,
        reason="" if code is not None else FOUND_BY_READING,
        uid=uid,
        new_version=version,
        # Lists are the cache's, and too big to be carried around.
        answer=None if call.verb in {"list", "watch"} else answer,
    )


def failed(call: Call, *, took: float, sends: int, code: int | None, error: BaseException) -> Call:
    """The same call, ended by an error, or cut off."""
    # The words of a foreign error may hold anything.
    said = plain(error.message) if isinstance(error, CtrlError) else f"It was interrupted by {type(error).__name__}."
    reason = error.reason if isinstance(error, ApiError) else ""
    code = error.code if isinstance(error, ApiError) else code
    return replace(call, took=took, sends=sends, code=code, reason=reason, error=said)


def _identity(answer: Obj) -> tuple[str, str]:
    """UID and version of the object answered; a Status about a deleted one knows the UID alone."""
    if answer.get("kind") == "Status":
        return str((answer.get("details") or {}).get("uid") or ""), ""
    metadata = answer.get("metadata") or {}
    return str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or "")
