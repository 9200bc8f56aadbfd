"""The rules for the schema in a CustomResourceDefinition: it must be structural, with valid defaults and list types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox.answers import Problem, encode
from kubectl_ctrl.sandbox.crds import patterns, structural, violations
from kubectl_ctrl.value import replace

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")
_COMBINED = ("anyOf", "allOf", "oneOf")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
# Keywords inside anyOf, allOf, oneOf and not, with the server's words: the schema around them must have these.
_FORBIDDEN_INSIDE = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_AT_ROOT = frozenset(
    {
        *("description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
        *(
            "maxLength",
            "minLength",
            "pattern",
            "maxItems",
            "minItems",
            "uniqueItems",
            "multipleOf",
            "required",
            "items",
        ),
        *("properties", "externalDocs", "example", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"),
    }
)
_ROOT_WORDS = (
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations]"
)


def problems(schema: Obj, path: str, *, status: bool) -> list[Problem]:
    """All violations of a version's schema; `status` tells that the version has that subresource."""
    found = list(_root(schema, path)) if status else []
    if schema.get("nullable"):
        found.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    structure = [*_structure(schema, path, "root"), *_completeness(schema, schema, path, path)]
    structure.sort(key=lambda problem: f"{problem.field}: {problem.message}")
    found += structure or list(_defaults({**schema, "x-kubernetes-embedded-resource": True}, path, inside=False))
    return [*found, *_openapi(schema, path, "", root=True)]


def required(path: str, words: str = "") -> Problem:
    message = f"Required value: {words}" if words else "Required value"
    return Problem(field=path, reason="FieldValueRequired", message=message)


def invalid(path: str, value: Any, words: str) -> Problem:
    shown = encode(value).decode()
    return Problem(field=path, reason="FieldValueInvalid", message=f"Invalid value: {shown}: {words}")


def forbidden(path: str, words: str) -> Problem:
    return Problem(field=path, reason="FieldValueForbidden", message=f"Forbidden: {words}")


def not_supported(path: str, value: Any, supported: tuple[str, ...]) -> Problem:
    listed = ", ".join(f'"{one}"' for one in supported)
    message = f"Unsupported value: {encode(value).decode()}: supported values: {listed}"
    return Problem(field=path, reason="FieldValueNotSupported", message=message)


def _root(schema: Obj, path: str) -> Iterator[Problem]:
    """With a status subresource the root may only have what also holds without the status."""
    if schema.get("type") not in (None, "", "object"):
        words = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid(f"{path}.type", schema["type"], words)
    elif any(name not in _AT_ROOT and value not in (None, False, [], {}) for name, value in schema.items()):
        words = f"only {_ROOT_WORDS} fields are allowed at the root of the schema if the status subresource is enabled"
        yield invalid(path, schema, words)


# -- the structure


def _structure(schema: Obj, path: str, level: str) -> Iterator[Problem]:
    items, additional = schema.get("items"), schema.get("additionalProperties")
    if schema.get("type") == "array" and not isinstance(items, dict):
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _structure(items, f"{path}.items", "item")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _structure(inner, f"{path}.properties[{name}]", "field")
    if additional is not None and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(additional, dict):
        yield from _structure(additional, f"{path}.additionalProperties", "field")
    yield from _extensions(schema, path)
    yield from _values(schema, path)
    yield from _type(schema, path, level)
    yield from _metadata(schema, path, level)


def _extensions(schema: Obj, path: str) -> Iterator[Problem]:
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                yield invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")


def _values(schema: Obj, path: str, *, skip_any: bool | None = None) -> Iterator[Problem]:
    """The parts that check values; `skip_any` ignores the pattern of an integer or string."""
    if skip_any is None:
        skip_any = schema.get("anyOf") == _INT_OR_STRING
    for name in _COMBINED:
        for place, inner in enumerate(schema.get(name) or ()):
            if name == "anyOf" and skip_any:
                continue
            nested = name == "allOf" and place == 0 and inner.get("anyOf") == _INT_OR_STRING
            yield from _nested(inner, f"{path}.{name}[{place}]", skip_any=nested)
    if "not" in schema:
        yield from _nested(schema["not"], f"{path}.not")
    if pattern := schema.get("pattern"):
        try:
            patterns.compiled(pattern)
        except patterns.BadPattern as error:
            yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


def _nested(schema: Obj, path: str, *, skip_any: bool = False) -> Iterator[Problem]:
    yield from _values(schema, path, skip_any=skip_any)
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], f"{path}.items")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _nested(inner, f"{path}.properties[{name}]")
    for name, words in _FORBIDDEN_INSIDE.items():
        if schema.get(name) not in (None, False, "", []):
            yield forbidden(f"{path}.{name}", words)
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _type(schema: Obj, path: str, level: str) -> Iterator[Problem]:
    kind, embedded = schema.get("type") or "", schema.get("x-kubernetes-embedded-resource")
    open_type = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        words = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, words) if kind else required(f"{path}.type", words)
    elif not kind and not open_type:
        where = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}
        yield required(f"{path}.type", f"must not be empty {where[level]}")
    if embedded and schema.get("additionalProperties") is not None:
        words = "must not be used if x-kubernetes-embedded-resource is set"
        yield forbidden(f"{path}.additionalProperties", words)
    if level == "root" and kind not in ("", "object"):
        yield invalid(f"{path}.type", kind, "must be object at the root")


def _metadata(schema: Obj, path: str, level: str) -> Iterator[Problem]:
    properties, embedded = schema.get("properties") or {}, schema.get("x-kubernetes-embedded-resource")
    if level == "root" or embedded:
        wanted = {"kind": "string", "apiVersion": "string", "metadata": "object"}
        for name, kind in wanted.items():
            if name in properties and (given := properties[name].get("type") or "") != kind:
                yield invalid(f"{path}.properties[{name}].type", given, f"must be {kind}")
    if level == "root" and "metadata" in properties:
        meta = properties["metadata"]
        odd = meta.keys() - {"type", "default", "properties"} or (meta.get("properties") or {}).keys() - {
            "name",
            "generateName",
        }
        if odd:
            words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(f"{path}.properties[metadata]", words)
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not properties:
        words = "is true without x-kubernetes-preserve-unknown-fields"
        yield required(f"{path}.properties", f"must not be empty if x-kubernetes-embedded-resource {words}")


def _completeness(part: Obj, schema: Obj, path: str, inside: str) -> Iterator[Problem]:
    """Fields that anyOf, allOf, oneOf and not mention must be declared outside them; only checked at the root."""
    parts = [(f"{inside}.{name}[{at}]", one) for name in _COMBINED for at, one in enumerate(part.get(name) or ())]
    if "not" in part:
        parts.insert(0, (f"{inside}.not", part["not"]))
    for where, one in parts:
        yield from _declared(one, schema, path, where)


def _declared(part: Obj, schema: Obj, path: str, inside: str) -> Iterator[Problem]:
    yield from _completeness(part, schema, path, inside)
    for key, inner in (part.get("properties") or {}).items():
        place, where = f"{path}.properties[{key}]", f"{inside}.properties[{key}]"
        if key in (schema.get("properties") or {}):
            yield from _declared(inner, schema["properties"][key], place, where)
        else:
            yield required(place, f"because it is defined in {where}")
    if isinstance(part.get("items"), dict):
        if isinstance(schema.get("items"), dict):
            yield from _declared(part["items"], schema["items"], f"{path}.items", f"{inside}.items")
        else:
            yield required(f"{path}.items", f"because it is defined in {inside}.items")


def _below(schema: Obj, path: str) -> Iterator[tuple[str, Obj]]:
    for name, inner in (schema.get("properties") or {}).items():
        yield f"{path}.properties[{name}]", inner
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield f"{path}.{name}", schema[name]


# -- defaults


def _defaults(schema: Obj, path: str, *, inside: bool) -> Iterator[Problem]:
    """Defaults must be pruned and valid; `inside` metadata of objects they cannot be checked alone."""
    if schema.get("default") is not None and not inside:
        place, value = f"{path}.default", schema["default"]
        if not same(structural.pruned_value(value, schema), value):
            yield invalid(place, value, "must not have unknown fields")
        for problem in violations.of_value(value, schema):
            below = problem.field if problem.field != "<nil>" else ""
            yield replace(problem, field=place + (below and f".{below}"))
    for place, inner in _below(schema, path):
        embedded = schema.get("x-kubernetes-embedded-resource")
        in_meta = inside or (embedded and place in [f"{path}.properties[{name}]" for name in _META])
        yield from _defaults(inner, place, inside=bool(in_meta))


# -- OpenAPI


def _openapi(schema: Any, path: str, no_default: str, *, root: bool = False) -> Iterator[Problem]:
    if not isinstance(schema, Mapping):
        return
    yield from _keywords(schema, path, no_default)
    additional, properties = schema.get("additionalProperties"), schema.get("properties") or {}
    if properties and additional is not None and additional is not True:
        words = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{path}.additionalProperties", words)
    yield from _openapi(additional, f"{path}.additionalProperties", no_default)
    for name, inner in properties.items():
        reason = f"in top-level {name}" if root and name in _META else no_default
        yield from _openapi(inner, f"{path}.properties[{name}]", reason)
    yield from _openapi(schema.get("not"), f"{path}.not", no_default)
    for name in ("allOf", "oneOf", "anyOf"):
        for place, inner in enumerate(schema.get(name) or ()):
            yield from _openapi(inner, f"{path}.{name}[{place}]", no_default)
    yield from _openapi(schema.get("items"), f"{path}.items", no_default)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    yield from _kept_type(schema, path, "map", "object", ("atomic", "granular"))
    yield from _kept_type(schema, path, "list", "array", ("atomic", "set", "map"))
    yield from _lists(schema, path)
    yield from _rules(schema, path)


def _keywords(schema: Mapping[str, Any], path: str, no_default: str) -> Iterator[Problem]:
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if schema.get("default") is not None and no_default:
        yield forbidden(f"{path}.default", f"must not be set {no_default}")
    for name in _UNSUPPORTED:
        if schema.get(name) not in (None, "", {}):
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", words)


def _kept_type(schema: Mapping[str, Any], path: str, name: str, kind: str, known: tuple[str, ...]) -> Iterator[Problem]:
    extension, given = f"x-kubernetes-{name}-type", schema.get("type") or ""
    if extension not in schema:
        return
    if given != kind:
        words = f"must be {kind} if {extension} is specified"
        yield invalid(f"{path}.type", given, words) if given else required(f"{path}.type", words)
    elif schema[extension] == "set" and isinstance(items := schema.get("items"), dict):
        yield from _set_items(items, f"{path}.items")
    if schema[extension] not in known:
        yield not_supported(f"{path}.{extension}", schema[extension], known)


def _set_items(items: Obj, path: str) -> Iterator[Problem]:
    words = "must be atomic as item of a list with x-kubernetes-list-type=set"
    listed = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and listed not in (None, "atomic"):
        yield invalid(f"{path}.x-kubernetes-list-type", listed, words)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield invalid(f"{path}.x-kubernetes-map-type", listed, words)


def _lists(schema: Mapping[str, Any], path: str) -> Iterator[Problem]:
    listed, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items") if isinstance(schema.get("items"), dict) else {}
    if keys and listed != "map":
        words, place = "must be map if x-kubernetes-list-map-keys is non-empty", f"{path}.x-kubernetes-list-type"
        yield required(place, words) if listed is None else invalid(place, listed, words)
    if listed == "map":
        yield from _keyed(keys, items or {}, path)
    if listed in ("map", "set") and items and items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {listed}")
    for key in keys if listed == "map" and items else ():
        yield from _key(key, items or {}, f"{path}.items.properties[{key}]")


def _keyed(keys: list[str], items: Obj, path: str) -> Iterator[Problem]:
    place = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield required(place, "must not be empty if x-kubernetes-list-type is map")
    if not items:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    elif (kind := items.get("type") or "") != "object":
        words = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", kind, words)
    else:
        for at, key in enumerate(keys):
            inner = (items.get("properties") or {}).get(key)
            if inner is None:
                yield invalid(place, keys, "entries must all be names of item properties")
            elif inner.get("type") in ("array", "object"):
                words = "must be a scalar type if parent array's x-kubernetes-list-type is map"
                yield invalid(f"{path}.items.properties[{key}].type", kind, words)
            if key in keys[:at]:
                yield invalid(place, keys, "must not contain duplicate entries")


def _key(key: str, items: Obj, path: str) -> Iterator[Problem]:
    inner = (items.get("properties") or {}).get(key)
    if inner is None:
        return
    words = "this property is in x-kubernetes-list-map-keys, so it"
    if key not in (items.get("required") or ()) and inner.get("default") is None:
        yield required(f"{path}.default", f"{words} must have a default or be a required property")
    if inner.get("nullable"):
        yield forbidden(f"{path}.nullable", f"{words} cannot be nullable")


def _rules(schema: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for place, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        where, text, message = (
            f"{path}.x-kubernetes-validations[{place}]",
            rule.get("rule", ""),
            rule.get("message", ""),
        )
        if not text.strip():
            yield required(f"{where}.rule", "rule is not specified")
        elif message and not message.strip():
            yield invalid(f"{where}.message", message, "must be non-empty if specified")
        elif "\n" in message.strip():
            yield invalid(f"{where}.message", message, "must not contain line breaks")
        elif "\n" in text.strip() and not message.strip():
            yield required(f"{where}.message", "message must be specified if rule contains line breaks")


def has_rules(schema: Any) -> bool:
    """Whether a schema has CEL rules anywhere."""
    if isinstance(schema, list):
        return any(map(has_rules, schema))
    return isinstance(schema, dict) and (
        bool(schema.get("x-kubernetes-validations")) or any(has_rules(inner) for inner in schema.values())
    )
