"""The rules for names, labels and references of every object, and the server's messages about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.testing import answers
from kubectl_ctrl.testing.answers import Problem
from kubectl_ctrl.testing.kinds import ServedKind

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
_STANDARD_FINALIZERS = frozenset({"foregroundDeletion", "orphan", "kubernetes"})


def check_name(kind: ServedKind, obj: Obj) -> None:
    name = obj["metadata"].get("name") or ""
    field = "metadata.name"
    if not name:
        message = "Required value: name or generateName is required"
        problem = Problem(field=field, reason="FieldValueRequired", message=message)
        raise answers.invalid(kind.resource, "", [problem])
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        rule = "must be no more than 253 characters" if len(name) > 253 else _NAME_RULE
        raise answers.invalid(kind.resource, name, [invalid(field, _quoted(name), rule)])


def problems(kind: ServedKind, obj: Obj) -> Iterator[Problem]:
    """The problems of an object's metadata, and of the labels of its pod template."""
    meta, spec = obj["metadata"], obj.get("spec")
    _check_texts(kind, meta)
    yield from _label_problems(meta.get("labels") or {}, "metadata.labels")
    for key in meta.get("annotations") or ():
        yield from _key_problems(key.lower(), "metadata.annotations", key)
    template = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(template, dict) and isinstance(template.get("metadata"), dict):
        yield from _label_problems(template["metadata"].get("labels") or {}, "spec.template.labels")
    yield from _owner_problems(meta.get("ownerReferences") or ())
    yield from _finalizer_problems(kind, meta.get("finalizers") or ())


def _check_texts(kind: ServedKind, meta: Obj) -> None:
    """Labels and annotations that are not strings fail to decode."""
    for name in ("labels", "annotations"):
        for value in (meta.get(name) or {}).values():
            if not isinstance(value, str):
                field = f"ObjectMeta.{name}" if kind.custom else f"ObjectMeta.metadata.{name}"
                why = f"json: cannot unmarshal {_json_type(value)} into Go struct field {field} of type string"
                raise answers.undecodable(kind.resource, why)


def _key_problems(key: str, field: str, shown: str) -> Iterator[Problem]:
    """The problems of a qualified name, such as the key of a label."""
    prefix, slash, name = key.rpartition("/")
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        yield invalid(field, _quoted(shown), f"prefix part {_NAME_RULE}")
    if not name:
        yield invalid(field, _quoted(shown), "name part must be non-empty")
    if len(name) > 63:
        yield invalid(field, _quoted(shown), "name part must be no more than 63 bytes")
    if not _LABEL.fullmatch(name):
        yield invalid(field, _quoted(shown), _KEY_RULE)


def _finalizer_problems(kind: ServedKind, finalizers: Any) -> Iterator[Problem]:
    field = "metadata.finalizers"
    for place, name in enumerate(finalizers):
        yield from _key_problems(name, field, name)
        if kind.strict_finalizers and not _is_qualified(name):
            words = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"{field}[{place}]", _quoted(name), words)


def finalizer_warnings(obj: Obj, old: Obj | None) -> list[str]:
    """The warnings about new finalizers without a domain on a custom resource."""
    before = (old["metadata"].get("finalizers") or ()) if old is not None else ()
    advice = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
    return [
        f'metadata.finalizers: "{name}": {advice}'
        for name in obj["metadata"].get("finalizers") or ()
        if name not in before and not _is_qualified(name)
    ]


def _is_qualified(finalizer: str) -> bool:
    return "/" in finalizer or finalizer in _STANDARD_FINALIZERS


def _label_problems(labels: Mapping[str, Any], field: str) -> Iterator[Problem]:
    for key, value in labels.items():
        yield from _key_problems(key, field, key)
        if len(value) > 63 or (value and not _LABEL.fullmatch(value)):
            yield invalid(field, _quoted(value), "must be no more than 63 bytes" if len(value) > 63 else _VALUE_RULE)


def _json_type(value: Any) -> str:
    return "bool" if isinstance(value, bool) else "number" if isinstance(value, (int, float)) else "object"


def _owner_problems(owners: Any) -> Iterator[Problem]:
    field = "metadata.ownerReferences"
    for owner in owners:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                words = "version must not be empty" if name == "apiVersion" else "must not be empty"
                yield invalid(f"{field}.{name}", '""', words)
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        names = " and ".join(f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2])
        words = 'Only one reference can have Controller set to true. Found "true" in references for '
        yield invalid(field, answers.encode(owners).decode(), words + names)


def invalid(field: str, value: Any, words: str) -> Problem:
    return Problem(field=field, reason="FieldValueInvalid", message=f"Invalid value: {value}: {words}")


def _quoted(text: str) -> str:
    return f'"{text}"'
