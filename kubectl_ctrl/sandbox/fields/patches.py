"""The results of JSON, merge and strategic merge patches."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import apply_merge
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.encoding import bodies
from kubectl_ctrl.sandbox.fields import jsonpatch, managed, strategic
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
_MOST_OPERATIONS = 10_000


def media_type(headers_type: str, kind: ServedKind) -> str:
    """The kind of the patch, if this resource type accepts it."""
    given = headers_type.partition(";")[0].strip()
    if kind.custom and given not in (JSON_PATCH, MERGE, APPLY):
        raise answers.unsupported_media([JSON_PATCH, MERGE, APPLY])
    if given not in (JSON_PATCH, MERGE, STRATEGIC, APPLY):
        raise answers.unsupported_media()
    return given


def patched(kind: ServedKind, old: Obj, body: Any, media: str) -> Obj:
    """The object after the patch; shares unchanged parts with `old`."""
    _check_form(body, media)
    try:
        if media == JSON_PATCH:
            new = jsonpatch.patched(old, body)
            bodies.check_depth(new)
        elif media == MERGE:
            new = apply_merge(old, body)
        else:
            new = strategic.merged(old, body, managed.schema_of(kind))
    except ValueError as error:
        raise answers.bad_request(str(error)) from error
    except jsonpatch.Unfit as error:
        raise answers.unprocessable("the server rejected our request due to an error in our request") from error
    if not isinstance(new, dict) or not isinstance(new.setdefault("metadata", {}), dict):
        raise answers.bad_request("the patched object is unrecognized (must be of type object)")
    return new


def _check_form(body: Any, media: str) -> None:
    wanted, go = (list, "[]handlers.jsonPatchOp") if media == JSON_PATCH else (dict, "map[string]interface {}")
    if not isinstance(body, wanted):
        raise _undecodable(body, go)
    if media != JSON_PATCH:
        return
    for operation in body:
        if not isinstance(operation, dict):
            raise _undecodable(operation, "handlers.jsonPatchOp")
    if len(body) > _MOST_OPERATIONS:
        most = f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got {len(body)}"
        raise answers.too_large(most)


def _undecodable(value: Any, go: str) -> answers.Refusal:
    given = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")
    return answers.bad_request(f"error decoding patch: json: cannot unmarshal {given} into Go value of type {go}")
