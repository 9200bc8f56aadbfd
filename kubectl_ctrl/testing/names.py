"""The rules that names, labels and references of every object obey, and the server's words about broken ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.testing import answers
from kubectl_ctrl.testing.answers import Problem
from kubectl_ctrl.testing.kinds import Kind

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def check_name(kind: Kind, obj: Obj) -> None:
    name = obj["metadata"].get("name") or ""
    field = "metadata.name"
    if not name:
        message = "Required value: name or generateName is required"
        problem = Problem(field=field, reason="FieldValueRequired", message=message)
        raise answers.invalid(kind.resource, "", [problem])
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        rule = "must be no more than 253 characters" if len(name) > 253 else _NAME_RULE
        raise answers.invalid(kind.resource, name, [invalid(field, _quoted(name), rule)])


def problems(obj: Obj) -> Iterator[Problem]:
    """What is wrong with an object's metadata, and with the labels of its pod template."""
    meta = obj["metadata"]
    yield from _label_problems(meta.get("labels") or {}, "metadata.labels")
    template = (obj.get("spec") or {}).get("template")
    if isinstance(template, dict) and isinstance(template.get("metadata"), dict):
        yield from _label_problems(template["metadata"].get("labels") or {}, "spec.template.labels")
    yield from _owner_problems(meta.get("ownerReferences") or ())


def _label_problems(labels: Mapping[str, Any], field: str) -> Iterator[Problem]:
    for key, value in labels.items():
        if not isinstance(value, str):
            why = f"json: cannot unmarshal {_json_type(value)} into Go struct field ObjectMeta.{field} of type string"
            raise answers.bad_request(why)
        prefix, slash, name = key.rpartition("/")
        if len(name) > 63 or not _LABEL.fullmatch(name) or (slash and not _SUBDOMAIN.fullmatch(prefix)):
            yield invalid(
                field, _quoted(key), "name part must be no more than 63 bytes" if len(name) > 63 else _KEY_RULE
            )
        if len(value) > 63 or (value and not _LABEL.fullmatch(value)):
            yield invalid(field, _quoted(value), "must be no more than 63 bytes" if len(value) > 63 else _VALUE_RULE)


def _json_type(value: Any) -> str:
    return "bool" if isinstance(value, bool) else "number" if isinstance(value, (int, float)) else "object"


def _owner_problems(owners: Any) -> Iterator[Problem]:
    field = "metadata.ownerReferences"
    for owner in owners:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                yield invalid(f"{field}.{name}", '""', "must not be empty")
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        names = " and ".join(f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2])
        words = 'Only one reference can have Controller set to true. Found "true" in references for '
        yield invalid(field, answers.encode(owners).decode(), words + names)


def invalid(field: str, value: Any, words: str) -> Problem:
    return Problem(field=field, reason="FieldValueInvalid", message=f"Invalid value: {value}: {words}")


def _quoted(text: str) -> str:
    return f'"{text}"'
