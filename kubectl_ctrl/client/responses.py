"""Responses of the API server: their objects, or errors with readable messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from kubectl_ctrl.client.order import Order
from kubectl_ctrl.client.words import excerpt, plain, redacted, sentence
from kubectl_ctrl.errors import (
    AlreadyExists,
    ApiError,
    BadAnswer,
    BadRequest,
    CallError,
    CallSite,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NamespaceTerminating,
    NotFound,
    NotServed,
    Replaced,
    ServerError,
    StatusCause,
    TooManyRequests,
    Unauthorized,
)
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.value import Value, replace

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}

# Codes that are clear without a Status: load balancers and the server's filters send them with plain text.
_CLEAR_WITHOUT_STATUS = frozenset({401, 429})

_NO_SUCH_PATH = "404 page not found"  # the API server's response for a path that it does not serve
_UID_MISMATCH = re.compile(r"uid mismatch|UID in (?:the )?precondition")
_DENIED = re.compile(
    r'cannot (?P<verb>[\w*]+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_OWNER_DENIED = re.compile(r"cannot set (?:blockOwnerDeletion|an ownerRef)")
_MOST_CAUSES = 8


class ErrorContent(Value, kw_only=True):
    """The content of a Status object, or of an error response without one."""

    code: int
    reason: str = ""
    message: str = ""
    details: Mapping[str, Any]
    causes: tuple[StatusCause, ...] = ()
    retry_after: float | None = None


def decoded(body: bytes) -> Any:
    """The JSON value of a body, or ValueError."""
    return orjson.loads(body)


def answered(response: HttpResponse, order: Order, site: CallSite) -> Obj:
    """The object of a successful response, or BadAnswer."""
    try:
        obj = decoded(response.body)
    except ValueError as exc:
        raise unreadable(response, order, site, str(exc)) from None
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
        raise unreadable(response, order, site, "it is not an object with a kind")
    if obj["kind"] != "Status" and not isinstance(obj.get("metadata"), dict):
        raise unreadable(response, order, site, "its object has no metadata")
    return obj


def refused(response: HttpResponse, order: Order, site: CallSite, now: float) -> CallError:
    """The error for a response other than 2xx; `now` is wall time, for a Retry-After with a date."""
    refusal = _from_status(_status_in(response.body), response, now)
    if refusal is not None:
        return error_of(refusal, order, site)
    if response.status == 404 and response.body.strip() == _NO_SUCH_PATH.encode():
        return error_of(_bare(response, now, _NO_SUCH_PATH), order, site)
    if response.status >= 500 or response.status in _CLEAR_WITHOUT_STATUS:
        quoted = response.body and not order.sensitive
        message = f"the answer begins with {excerpt(response.body)}" if quoted else ""
        return error_of(_bare(response, now, message), order, site)
    return unreadable(response, order, site, "it is not a Status")


def refused_in_stream(status: Obj, order: Order, site: CallSite, now: float) -> CallError:
    """The error for the object of an ERROR event."""
    response = HttpResponse(status=200)
    refusal = _from_status(status, response, now) if status.get("kind") == "Status" else None
    if refusal is None:
        return unreadable(response, order, site, "its ERROR frame contains no Status")
    return error_of(refusal, order, site)


def unfit_for_a_stream(headers: Mapping[str, str], order: Order, site: CallSite) -> BadAnswer | None:
    """The error for a 200 with something other than JSON, usually a login page."""
    media = headers.get("content-type", "application/json")
    if media.startswith("application/json"):
        return None
    response = HttpResponse(status=200, headers=headers)
    return unreadable(response, order, site, f"it is {media!r}, not a stream of JSON")


def unreadable(response: HttpResponse, order: Order, site: CallSite, why: str) -> BadAnswer:
    """The error for a response that is truncated, or not from a Kubernetes API server."""
    shown = f"{len(response.body)} bytes (not shown)" if order.sensitive else excerpt(response.body)
    where = response.headers.get("location", "")
    to = f" and points to {plain(where, 200)!r}" if where else ""
    return BadAnswer(
        f"The answer to {site.verb} {site.target} ({response.status}{to}) cannot be used: {sentence(plain(why))} "
        f"It begins with {shown}.",
        site=site,
        next_step="Check that the server and the proxy of this context are those of a Kubernetes API server.",
    )


def error_of(refusal: ErrorContent, order: Order, site: CallSite) -> ApiError:
    """The error for a refusal."""
    message, causes = refusal.message, refusal.causes
    if order.sensitive:
        message = redacted(message, order.body)
        causes = tuple(replace(cause, message=redacted(cause.message, order.body)) for cause in causes)
    kind = _class_of(refusal, order)
    text, next_step = _phrase(kind, refusal, plain(message), order)
    return kind(
        text,
        site=site,
        code=refusal.code,
        reason=refusal.reason,
        causes=causes,
        next_step=next_step,
        retry_after=refusal.retry_after,
    )


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds of a Retry-After header; None without a valid one."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, at.timestamp() - now)


def _class_of(refusal: ErrorContent, order: Order) -> type[ApiError]:
    if refusal.code == 403 and any(cause.reason == "NamespaceTerminating" for cause in refusal.causes):
        return NamespaceTerminating
    wrong_uid = any(cause.field == "metadata.uid" for cause in refusal.causes) or _UID_MISMATCH.search(refusal.message)
    if refusal.code in {409, 422} and order.verb != "create" and wrong_uid:
        return Replaced
    if refusal.code == 409 and refusal.reason == "AlreadyExists":
        return AlreadyExists
    if refusal.code == 404 and not refusal.details.get("name"):
        return NotServed
    if refusal.code >= 500:
        return ServerError
    return _BY_CODE.get(refusal.code, ApiError)


def _status_in(body: bytes) -> Obj | None:
    try:
        status = decoded(body)
    except ValueError:
        return None
    return status if isinstance(status, dict) and status.get("kind") == "Status" else None


def _from_status(status: Obj | None, response: HttpResponse, now: float) -> ErrorContent | None:
    if status is None:
        return None
    details = status.get("details")
    details = details if isinstance(details, dict) else {}
    code = status.get("code")
    # An ERROR event comes in a 200; elsewhere the HTTP status counts, because proxies act on it too.
    code = response.status if response.status >= 300 else code if isinstance(code, int) and code >= 300 else 500
    hint = retry_after(response.headers, now)
    if hint is None and isinstance(seconds := details.get("retryAfterSeconds"), int) and seconds > 0:
        hint = float(seconds)
    return ErrorContent(
        code=code,
        reason=plain(str(status.get("reason") or ""), 100),
        message=str(status.get("message") or ""),
        details=details,
        causes=_causes(details),
        retry_after=hint,
    )


def _causes(details: Mapping[str, Any]) -> tuple[StatusCause, ...]:
    causes = details.get("causes")
    return tuple(
        StatusCause(
            reason=plain(str(cause.get("reason") or ""), 100),
            message=plain(str(cause.get("message") or "")),
            field=plain(str(cause.get("field") or ""), 300),
        )
        for cause in (causes if isinstance(causes, list) else [])
        if isinstance(cause, dict)
    )


def _bare(response: HttpResponse, now: float, message: str) -> ErrorContent:
    hint = retry_after(response.headers, now)
    return ErrorContent(code=response.status, message=message, details={}, retry_after=hint)


def _phrase(kind: type[ApiError], refusal: ErrorContent, message: str, order: Order) -> tuple[str, str]:
    """The message, and the next step."""
    what = f"{order.verb} {order.target}"
    why = f": {sentence(message)}" if message else "."
    code = f"{refusal.code} {refusal.reason}".strip()
    if kind is Forbidden:
        return _forbidden(refusal, message, order, f"The server forbids {what} ({code}){why}")
    if kind is Invalid and refusal.causes and not order.sensitive:
        return f"The object of {what} is invalid ({code}): {_listed(refusal.causes)}.", ""
    phrase, next_step = _PHRASES.get(kind, _PLAIN_PHRASE)
    if kind is NotFound and order.verb == "create":  # not the object is missing, but something that it needs
        phrase, next_step = _PLAIN_PHRASE
    return phrase.format(what=what, code=code, why=why, verb=order.verb, target=order.target), next_step


# str.format fills in the values once; the server's text is never a format string.
_PLAIN_PHRASE = ("The server refused {what} ({code}){why}", "")
_PHRASES: dict[type[ApiError], tuple[str, str]] = {
    BadRequest: ("The server did not understand {what} ({code}){why}", ""),
    Unauthorized: (
        "The server does not accept the credentials ({what}, {code}){why}",
        "Log in again, or check the user of this kubeconfig context.",
    ),
    NamespaceTerminating: (
        "The namespace is being deleted and accepts no new objects ({what}, {code}){why}",
        "Wait until the namespace is deleted.",
    ),
    NotFound: ("There is no {target} ({verb}, {code}){why}", ""),
    NotServed: (
        "The server does not serve this resource type ({what}, {code}){why}",
        "Install its CRD, or check the group and version; kubectl api-resources lists what is served.",
    ),
    Replaced: (
        "The object with this UID no longer exists ({what}, {code}){why}",
        "Read again: the name may belong to another object now.",
    ),
    Conflict: ("The server reports a conflict for {what} ({code}){why}", "Read the object again and retry."),
    AlreadyExists: ("There is already a {target} ({verb}, {code}){why}", ""),
    Expired: (
        "The resource version or continue token of {what} is too old ({code}){why}",
        "List again from the start.",
    ),
    TooManyRequests: ("The server is overloaded and rejected {what} ({code}){why}", "Retry later."),
    ServerError: ("The server failed to {what} ({code}){why}", ""),
}


def _listed(causes: tuple[StatusCause, ...]) -> str:
    """The causes in order, without duplicates, which some servers send."""
    texts = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes]
    parts = [part.rstrip(".") for part in dict.fromkeys(texts)]
    more = f"; and {len(parts) - _MOST_CAUSES} more" if len(parts) > _MOST_CAUSES else ""
    return "; ".join(parts[:_MOST_CAUSES]) + more


def _forbidden(refusal: ErrorContent, message: str, order: Order, text: str) -> tuple[str, str]:
    """The next step for a 403: an RBAC rule, but only for a denial by the authorizer, not by admission."""
    if denied := _DENIED.search(refusal.message):
        words = {key: plain(value or "") for key, value in denied.groupdict().items()}
        return text, _rule(words["verb"], words["resource"], words["group"], words["namespace"])
    if _OWNER_DENIED.search(refusal.message):
        return text, "Add a rule with verb update on the finalizers subresource of the owner's type."
    if message or order.resource is None:
        return text, ""
    verb = {"apply": "patch"}.get(order.verb, order.verb)
    tail = f"/{order.subresource}" if order.subresource else ""
    return text, _rule(verb, order.resource.plural + tail, order.resource.group, order.namespace)


def _rule(verb: str, resource: str, group: str, namespace: str) -> str:
    where = f"a Role in namespace {namespace!r}" if namespace else "a ClusterRole"
    return f'Add to {where}: apiGroups ["{group}"], resources ["{resource}"], verbs ["{verb}"].'
