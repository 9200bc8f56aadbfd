"""The rules for names, labels and references of every object, and the server's messages about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.answers import Problem
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.sandbox.kinds.checks import words
from kubectl_ctrl.sandbox.kinds.checks.table import NAMES

_STANDARD_FINALIZERS = frozenset({"foregroundDeletion", "orphan", "kubernetes"})


def check_name(kind: ServedKind, obj: Obj) -> None:
    if not obj["metadata"].get("name"):
        message = "name or generateName is required"
        raise answers.invalid(kind.resource, "", [words.required("metadata.name", message)])


def problems(kind: ServedKind, obj: Obj, old: Obj | None) -> Iterator[Problem]:
    """The problems of an object's metadata; the name cannot change."""
    meta = obj["metadata"]
    _check_texts(kind, meta)
    if old is None:
        form = words.subdomain if kind.custom else NAMES.get(kind.resource.kind, words.subdomain)
        yield from words.texts("metadata.name", meta["name"], form)
    yield from words.labels("metadata.labels", meta.get("labels"))
    yield from words.annotation_texts("metadata.annotations", meta.get("annotations"))
    yield from _owner_problems(meta.get("ownerReferences") or ())
    yield from _finalizer_problems(kind, meta.get("finalizers") or [])


def _check_texts(kind: ServedKind, meta: Obj) -> None:
    """Labels and annotations that are not strings fail to decode."""
    for name in ("labels", "annotations"):
        texts = meta.get(name) or {}
        if not isinstance(texts, dict):
            raise _undecodable(kind, name, texts, "map[string]string")
        for value in texts.values():
            if not isinstance(value, str):
                raise _undecodable(kind, name, value, "string")


def _undecodable(kind: ServedKind, name: str, value: Any, go: str) -> answers.Refusal:
    field = f"ObjectMeta.{name}" if kind.custom else f"ObjectMeta.metadata.{name}"
    why = f"json: cannot unmarshal {_json_type(value)} into Go struct field {field} of type {go}"
    return answers.undecodable(kind.resource, why)


def _finalizer_problems(kind: ServedKind, finalizers: list[str]) -> Iterator[Problem]:
    field = "metadata.finalizers"
    for name in finalizers:
        yield from words.texts(field, name, words.qualified)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        yield words.invalid(field, finalizers, "finalizer orphan and foregroundDeletion cannot be both set")
    for place, name in enumerate(finalizers):
        if kind.strict_finalizers and not _is_qualified(name):
            said = "name is neither a standard finalizer name nor is it fully qualified"
            yield words.invalid(f"{field}[{place}]", name, said)


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


def _json_type(value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        return "bool" if isinstance(value, bool) else "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _owner_problems(owners: Any) -> Iterator[Problem]:
    field = "metadata.ownerReferences"
    for owner in owners:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                said = "version must not be empty" if name == "apiVersion" else "must not be empty"
                yield words.invalid(f"{field}.{name}", "", said)
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        names = " and ".join(f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2])
        said = 'Only one reference can have Controller set to true. Found "true" in references for '
        yield words.invalid(field, owners, said + names)
