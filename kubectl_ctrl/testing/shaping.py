"""Prunes, defaults and checks a client's object before it is stored."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.testing import answers, builtin, managed, names, scales, schemas, structural
from kubectl_ctrl.testing.fieldsets import child_of, items_of
from kubectl_ctrl.testing.kinds import ServedKind

_METADATA = frozenset(
    {
        *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "labels"),
        *("annotations", "ownerReferences", "finalizers", "managedFields"),
        *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    }
)


def without_nulls(value: Any) -> Any:
    """A copy without keys whose value is null: in nearly all types null means absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _tidy(value: Any, schema: Obj) -> Any:
    """Without empty lists and maps, which Go's types omit in JSON; empty structs stay."""
    if isinstance(value, list):
        return [_tidy(item, items_of(schema)) for item in value]
    if not isinstance(value, dict) or schema.get("x-kubernetes-map-type") == "atomic":
        return value
    result: Obj = {}
    for key, item in value.items():
        inner, _ = child_of(schema, key)
        if not (item == [] or (item == {} and "additionalProperties" in inner)):
            result[key] = _tidy(item, inner)
    return result


def shaped(kind: ServedKind, obj: Obj, validation: str, *, nulls: bool = False) -> tuple[Obj, list[str]]:
    """A copy of the object with unknown fields dropped and defaults filled in, and the warnings about that.

    With `nulls` they stay in a custom resource, for its schema to check: apply empties an object by setting it to null.
    """
    obj = {**obj, "metadata": without_nulls(obj["metadata"])} if nulls and kind.custom else without_nulls(obj)
    obj["metadata"] = _tidy(obj["metadata"], schemas.METADATA)
    if not kind.custom:
        return builtin.defaulted(_tidy(obj, managed.schema_of(kind))), []
    odd = sorted(obj["metadata"].keys() - _METADATA)
    obj["metadata"] = {key: value for key, value in obj["metadata"].items() if key in _METADATA}
    obj, dropped = structural.pruned(obj, kind.schema)
    said = [f'unknown field "{path}"' for path in [*(f"metadata.{name}" for name in odd), *sorted(dropped)]]
    if said and validation == "Strict":
        resource = kind.resource
        message = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        raise answers.bad_request(f"{message}strict decoding error: {', '.join(said)}")
    return structural.defaulted(obj, kind.schema), [] if validation == "Ignore" else said


def check(kind: ServedKind, obj: Obj, old: Obj | None) -> None:
    """Raises the 422 of an object that violates its schema or a rule of its kind."""
    found = [*names.problems(kind, obj)]
    found += (
        [*structural.problems(obj, kind.schema), *scales.problems(kind, obj)]
        if kind.custom
        else builtin.problems(obj, old)
    )
    if found:
        raise answers.invalid(kind.resource, str(obj["metadata"]["name"]), found)


def check_known(kind: ServedKind, config: Obj) -> None:
    """Server-side apply rejects undeclared fields, with a plain 500."""
    if not kind.custom:
        return
    bare = {key: value for key, value in config.items() if key not in ("apiVersion", "kind", "metadata")}
    fields = list(structural.untyped(bare, {**kind.schema, "type": "object"}))
    if not fields:
        return
    meta, resource = config["metadata"], kind.resource
    where = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {resource.api_version}, Kind={resource.kind}"
    text = fields[0] if len(fields) == 1 else "errors:\n" + "\n".join(f"  {field}" for field in fields)
    raise answers.unparsed(f"failed to create typed patch object ({where}): {text}")
