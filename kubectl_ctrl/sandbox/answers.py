"""The refusals of a kube-apiserver, as the Status objects that it sends."""

from __future__ import annotations

import json
from typing import Any

import orjson

from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.value import Value

JSON = {"content-type": "application/json"}


def encode(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # too large an integer, too deep, or a key that is no text
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def answer(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(status=status, headers=JSON, body=encode(value))


class Refusal(Exception):
    """Ends the handling of one request; `body` is a Status object, or text as a proxy or filter would send."""

    def __init__(self, code: int, body: Obj | str, *, retry_after: int | None = None) -> None:
        super().__init__(body if isinstance(body, str) else body["message"])
        self.code = code
        self.body = body
        self.retry_after = retry_after

    def response(self) -> HttpResponse:
        headers = {"content-type": "text/plain; charset=utf-8"} if isinstance(self.body, str) else dict(JSON)
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        body = self.body.encode() if isinstance(self.body, str) else encode(self.body)
        return HttpResponse(status=self.code, headers=headers, body=body)


class Problem(Value, kw_only=True):
    """One problem of an object: a cause of a 422."""

    field: str
    reason: str  # FieldValueInvalid, FieldValueRequired, ...
    message: str  # `Invalid value: 0: should be greater than or equal to 1`

    def cause(self) -> Obj:
        return {"reason": self.reason, "message": self.message, "field": self.field}


def status(code: int, reason: str, message: str, **details: Any) -> Obj:
    """A Status of a failure, without empty details, as the server sends it."""
    body: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    body["reason"] = reason
    if kept := {key: value for key, value in details.items() if value not in ("", None, [])}:
        body["details"] = kept
    body["code"] = code
    return {key: value for key, value in body.items() if value != ""}


def not_found(resource: Resource, name: str) -> Refusal:
    message = f'{resource.full_name} "{name}" not found'
    return Refusal(404, status(404, "NotFound", message, name=name, group=resource.group, kind=resource.plural))


def no_such_path() -> Refusal:
    """The path is not served."""
    return Refusal(404, "404 page not found\n")


def no_such_resource() -> Refusal:
    """The group version is served, but not this resource."""
    message = "the server could not find the requested resource"
    return Refusal(404, {**status(404, "NotFound", message), "details": {}})


def already_exists(resource: Resource, name: str, *, deleting: bool = False) -> Refusal:
    message = f'{resource.full_name} "{name}" already exists'
    message = f"object is being deleted: {message}" if deleting else message
    return Refusal(409, status(409, "AlreadyExists", message, name=name, group=resource.group, kind=resource.plural))


def name_collision(resource: Resource, name: str) -> Refusal:
    """All tried generated names are taken; the client may try again."""
    message = f'{resource.full_name} "{name}" already exists, the server was not able to generate a unique name'
    details = {"name": name, "group": resource.group, "kind": resource.plural, "retryAfterSeconds": 1}
    return Refusal(409, status(409, "AlreadyExists", f"{message} for the object", **details), retry_after=1)


def conflict(resource: Resource, name: str, why: str = "") -> Refusal:
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {resource.full_name} "{name}": {why}'
    return Refusal(409, status(409, "Conflict", message, name=name, group=resource.group, kind=resource.plural))


def uid_conflict(resource: Resource, key: Key, wanted: str, actual: str) -> Refusal:
    """A PUT of an object that was replaced."""
    where = "/".join(filter(None, ("/registry", resource.plural, key.namespace, key.name)))
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {actual}"
    full = f"StorageError: invalid object, Code: 4, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    return conflict(resource, key.name, full)


def uid_mismatch(resource: Resource, name: str, wanted: str, actual: str) -> Refusal:
    """A DELETE with the UID of an object that was replaced."""
    why = f"the UID in the precondition ({wanted}) does not match the UID in record ({actual}). "
    return _precondition(resource, name, why + "The object might have been deleted and then recreated")


def version_mismatch(resource: Resource, name: str, wanted: str, actual: str) -> Refusal:
    """A DELETE with a version that is no longer the object's."""
    field = "ResourceVersion"
    why = f"the {field} in the precondition ({wanted}) does not match the {field} in record ({actual}). "
    return _precondition(resource, name, why + "The object might have been modified")


def _precondition(resource: Resource, name: str, why: str) -> Refusal:
    message = f'Operation cannot be fulfilled on {_kind_name(resource)} "{name}": {why}'
    return Refusal(409, status(409, "Conflict", message, name=name, group=resource.group, kind=resource.kind))


def apply_conflict(causes: list[Obj]) -> Refusal:
    """The causes have messages such as `conflict with "kubectl" using v1` and the name of the field."""
    if len(causes) == 1:
        said = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines: list[str] = []
        for message in sorted(frozenset(cause["message"] for cause in causes)):
            lines.append(f"{message.replace('conflict', 'conflicts', 1)}:")
            lines += [f"- {cause['field']}" for cause in causes if cause["message"] == message]
        said = f"{len(causes)} conflicts: " + "\n".join(lines)
    return Refusal(409, status(409, "Conflict", f"Apply failed with {said}", causes=causes))


def invalid(resource: Resource, name: str, problems: list[Problem]) -> Refusal:
    said = list(dict.fromkeys(f"{problem.field}: {problem.message}" for problem in problems))
    text = said[0] if len(said) == 1 else "[" + ", ".join(said) + "]"
    message = f'{_kind_name(resource)} "{name}" is invalid: {text}'
    causes = [problem.cause() for problem in problems]
    details = {"name": name, "group": resource.group, "kind": resource.kind, "causes": causes}
    return Refusal(422, status(422, "Invalid", message, **details))


def no_version(resource: Resource, name: str) -> Refusal:
    """A PUT without the required resourceVersion."""
    problem = "Invalid value: 0: must be specified for an update"
    message = f'{resource.full_name} "{name}" is invalid: metadata.resourceVersion: {problem}'
    cause = {"reason": "FieldValueInvalid", "message": problem, "field": "metadata.resourceVersion"}
    details = {"name": name, "group": resource.group, "kind": resource.plural, "causes": [cause]}
    return Refusal(422, status(422, "Invalid", message, **details))


def _kind_name(resource: Resource) -> str:
    return f"{resource.kind}.{resource.group}" if resource.group else resource.kind


def unprocessable(message: str) -> Refusal:
    """A 422 about the patch rather than a field."""
    return Refusal(422, {**status(422, "Invalid", message), "details": {}})


def bad_options(field: str, message: str) -> Refusal:
    """A 422 about the query of a list or watch."""
    return bad_query("ListOptions", Problem(field=field, reason="FieldValueForbidden", message=f"Forbidden: {message}"))


def bad_query(options: str, *problems: Problem) -> Refusal:
    """A 422 about options: ListOptions, CreateOptions and the like."""
    return invalid(Resource("meta.k8s.io", "v1", "", options), "", list(problems))


def bad_request(message: str) -> Refusal:
    return Refusal(400, status(400, "BadRequest", message))


def undecodable(resource: Resource, why: str, version: str = "") -> Refusal:
    """A body that does not fit the Go type of its kind."""
    kind = resource.kind
    return bad_request(f'{kind} in version "{version or resource.version}" cannot be handled as a {kind}: {why}')


def forbidden(resource: Resource, name: str, why: str, *, causes: list[Obj] | None = None) -> Refusal:
    message = f'{resource.full_name} "{name}" is forbidden: {why}'
    details = {"name": name, "group": resource.group, "kind": resource.plural, "causes": causes}
    return Refusal(403, status(403, "Forbidden", message, **details))


def terminating(resource: Resource, name: str, namespace: str) -> Refusal:
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
    cause["field"] = "metadata.namespace"
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    return forbidden(resource, name, why, causes=[cause])


def unparsed(message: str) -> Refusal:
    """A 500 without a reason, for values that the server checks too late."""
    return Refusal(500, status(500, "", message))


def unauthorized() -> Refusal:
    return Refusal(401, status(401, "Unauthorized", "Unauthorized"))


def too_large(why: str) -> Refusal:
    return Refusal(413, status(413, "RequestEntityTooLarge", f"Request entity too large: {why}"))


def not_allowed() -> Refusal:
    message = "the server does not allow this method on the requested resource"
    return Refusal(405, {**status(405, "MethodNotAllowed", message), "details": {}})


def unsupported_media(accepted: list[str] | None = None) -> Refusal:
    if not accepted:
        return Refusal(415, {**status(415, "UnsupportedMediaType", "415: Unsupported Media Type"), "details": {}})
    message = "the body of the request was in an unknown format - accepted media types include: "
    return Refusal(415, status(415, "UnsupportedMediaType", message + ", ".join(accepted)))


def expired(message: str, *, inconsistent: str = "") -> Refusal:
    body = status(410, "Expired", message)
    if inconsistent:
        body["metadata"] = {"continue": inconsistent}
    return Refusal(410, body)


def version_too_large(wanted: int, current: int) -> Refusal:
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return Refusal(504, status(504, "Timeout", message, causes=[cause], retryAfterSeconds=1), retry_after=1)


def failure(code: int, *, reason: str = "", message: str = "", retry_after: int | None = None) -> Refusal:
    """The default answer of the server, or of a proxy in front of it, with this code."""
    known = _USUAL.get(code, ("InternalError", f"an error on the server ({code})"))
    reason, message = reason or known[0], message or known[1]
    if code == 429 and message == known[1]:
        # Priority and fairness rejects requests before any code that could write a Status.
        return Refusal(429, message, retry_after=1 if retry_after is None else retry_after)
    return Refusal(code, status(code, reason, message, retryAfterSeconds=retry_after), retry_after=retry_after)


_USUAL = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "forbidden: access is not allowed"),
    404: ("NotFound", "the server could not find the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    410: ("Expired", "The resourceVersion for the provided list is too old."),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "Too many requests, please try again later.\n"),
    500: ("InternalError", "Internal error occurred: the request could not be served"),
    502: ("", "error trying to reach service: the backend did not answer"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted duration"),
}
