"""The options of requests, in query and body: valid values, and the server's messages about others."""

from __future__ import annotations

import re

from kubectl_ctrl.model.durations import parse_duration
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.answers import Problem
from kubectl_ctrl.sandbox.requests import ParsedRequest
from kubectl_ctrl.value import replace

_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_POLICIES = ("", "Foreground", "Background", "Orphan")
_LONGEST_MANAGER = 128
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")


def check_timeout(request: HttpRequest) -> None:
    """Raise the 400 of a timeout that is not a duration of Go; every request may have one."""
    timeout = dict(request.query).get("timeout", "")
    try:
        parse_duration(timeout or "0")
    except ValueError as error:
        why = f'invalid timeout specified in the request URL - time: invalid duration "{timeout}"'
        raise answers.bad_request(why) from error


def checked_write(ask: ParsedRequest) -> ParsedRequest:
    """The request with the dryRun of its DeleteOptions; raises the 422 of an invalid option of a write."""
    if ask.verb == "delete" and (dry_run := ask.opened()[1].get("dryRun")):
        ask = replace(ask, query={**ask.query, "dryRun": str(dry_run[0])})
    options = f"{ask.verb.capitalize()}Options"
    if ask.query.get("dryRun", "All") not in ("", "All"):
        raise answers.bad_query(options, not_supported("dryRun", f'["{ask.query["dryRun"]}"]', '"All"'))
    if len(ask.query.get("fieldManager", "")) > _LONGEST_MANAGER:
        message = f"Too long: may not be more than {_LONGEST_MANAGER} bytes"
        raise answers.bad_query(options, Problem(field="fieldManager", reason="FieldValueTooLong", message=message))
    validation = ask.query.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        supported = ", ".join(f'"{name}"' for name in _VALIDATIONS)
        raise answers.bad_query(options, not_supported("fieldValidation", f'"{validation}"', supported))
    return ask


def propagation(ask: ParsedRequest, given: Obj) -> str:
    """The propagation policy of a deletion."""
    policy = str(given.get("propagationPolicy") or ask.query.get("propagationPolicy") or "")
    if policy not in _POLICIES:
        supported = '"Foreground", "Background", "Orphan", "nil"'
        raise answers.bad_query("DeleteOptions", not_supported("propagationPolicy", f'"{policy}"', supported))
    return policy


def number(ask: ParsedRequest, name: str) -> int:
    """An option that is a whole number of 64 bits, 0 without it; raises the 400 of anything else."""
    text = ask.query.get(name) or "0"
    if not _NUMBER.fullmatch(text):
        raise answers.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def check_list(ask: ParsedRequest) -> None:
    """Raises the 422 of a combination of options that a list rejects."""
    match, version = ask.query.get("resourceVersionMatch", ""), ask.query.get("resourceVersion", "")
    field = "resourceVersionMatch"
    if "sendInitialEvents" in ask.query:
        raise answers.bad_options("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if match and not version:
        raise answers.bad_options(field, f"{field} is forbidden unless resourceVersion is provided")
    if match not in ("", "Exact", "NotOlderThan"):
        supported = '"Exact", "NotOlderThan", ""'
        raise answers.bad_query("ListOptions", not_supported(field, f'"{match}"', supported))
    if match == "Exact" and version == "0":
        raise answers.bad_options(field, f'{field} "exact" is forbidden for resourceVersion "0"')


def check_watch(ask: ParsedRequest) -> None:
    """Raises the 422 of a combination of options that a watch rejects."""
    match, field = ask.query.get("resourceVersionMatch", ""), "resourceVersionMatch"
    initial = "sendInitialEvents" in ask.query
    if match == "NotOlderThan" if initial else not match:
        return
    words = f"{field} is forbidden for watch unless sendInitialEvents is provided"
    words = f"sendInitialEvents requires setting {field} to NotOlderThan" if initial else words
    problems = [Problem(field=field, reason="FieldValueForbidden", message=f"Forbidden: {words}")]
    if match not in ("", "NotOlderThan"):
        problems.append(not_supported(field, f'"{match}"', '"NotOlderThan"'))
    raise answers.bad_query("ListOptions", *problems)


def not_supported(field: str, given: str, supported: str) -> Problem:
    message = f"Unsupported value: {given}: supported values: {supported}"
    return Problem(field=field, reason="FieldValueNotSupported", message=message)
