"""Prunes, defaults and checks a client's object before it is stored."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj, version_of
from kubectl_ctrl.model.resources import CRDS
from kubectl_ctrl.sandbox import answers, names, scales
from kubectl_ctrl.sandbox.crds import definitions, structural, violations
from kubectl_ctrl.sandbox.encoding import bodies
from kubectl_ctrl.sandbox.kinds import builtin, schemas, structs
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.sandbox.requests import ParsedRequest


def without_nulls(value: Any) -> Any:
    """A copy without keys whose value is null: in nearly all types null means absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def shaped(ask: ParsedRequest, obj: Obj, *, nulls: bool = False) -> tuple[Obj, list[str]]:
    """A copy of the object with unknown fields dropped and defaults filled in, and the warnings about that.

    With `nulls` those that a custom resource's schema does not allow stay in it, for the check to find: apply empties
    an object by setting it to null.
    """
    kind = ask.kind
    try:
        if kind.custom:
            return _custom(ask, obj, nulls=nulls)
        known, unknown = structs.read(obj, kind.schema)
    except structs.WrongType as error:
        raise answers.undecodable(kind.resource, str(error)) from error
    said = _reported(ask, obj, unknown)
    return structs.complete(known, kind.schema), said


def _custom(ask: ParsedRequest, obj: Obj, *, nulls: bool) -> tuple[Obj, list[str]]:
    kind = ask.kind
    obj = {**obj, "metadata": without_nulls(obj["metadata"])}
    obj["metadata"], unknown = structs.read(obj["metadata"], schemas.metadata(), "metadata")
    obj, dropped = structural.pruned(obj, kind.schema)
    said = _reported(ask, obj, [*unknown, *sorted(dropped)])
    return structural.defaulted(obj, kind.schema, nulls=nulls), said


def _reported(ask: ParsedRequest, obj: Obj, unknown: list[str]) -> list[str]:
    """The warnings about duplicate and unknown fields; raises the 400 of a strict request."""
    validation = ask.query.get("fieldValidation", "Warn")
    found = bodies.findings(ask.kind, obj, list(ask.duplicates), unknown)
    if found and validation == "Strict":
        raise answers.undecodable(ask.resource, bodies.strict_error(found))
    return [] if validation == "Ignore" else found


def converted(kind: ServedKind, obj: Obj) -> Obj:
    """A stored object in this version; a custom one with the defaults and without the fields of its current schema."""
    api_version = kind.resource.api_version
    if not kind.custom:
        return kind.shown(obj)
    if obj["apiVersion"] == api_version and int(version_of(obj) or 0) > kind.since:
        return obj
    kept, _ = structural.pruned(obj, kind.schema)
    return {**structural.defaulted(kept, kind.schema), "apiVersion": api_version}


def check(kind: ServedKind, obj: Obj, old: Obj | None, subresource: str = "") -> None:
    """Raises the 422 of an object that violates its schema or a rule of its kind.

    Built-in subresources have rules of their own: a binding sets the node of a pod, which nobody else may change.
    """
    found = [*names.problems(kind, obj, old)]
    if kind.resource == CRDS:
        found += definitions.problems(obj, old)
    found += (
        [*violations.problems(obj, old, kind.schema), *scales.problems(kind, obj)]
        if kind.custom
        else []
        if subresource
        else builtin.problems(obj, old)
    )
    if found:
        raise answers.invalid(kind.resource, str(obj["metadata"]["name"]), found)


def check_known(kind: ServedKind, config: Obj) -> None:
    """Server-side apply rejects undeclared fields, with a plain 500."""
    bare = {key: value for key, value in config.items() if key not in ("apiVersion", "kind", "metadata")}
    fields = list(structural.untyped(bare, {**kind.schema, "type": "object"}))
    if not fields:
        return
    meta, resource = config["metadata"], kind.resource
    where = (
        f"{meta.get('namespace', '')}/{meta.get('name', '')}; {resource.group}/{resource.version}, Kind={resource.kind}"
    )
    text = fields[0] if len(fields) == 1 else "errors:\n" + "\n".join(f"  {field}" for field in fields)
    raise answers.unparsed(f"failed to create typed patch object ({where}): {text}")
