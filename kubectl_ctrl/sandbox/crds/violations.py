"""Checks a custom resource against its schema, in the words and order of the API server.

Values that an update does not change may violate the schema: it may have become stricter after they were stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox.answers import Problem, encode
from kubectl_ctrl.sandbox.crds import formats, patterns
from kubectl_ctrl.sandbox.fields.fieldsets import ABSENT, by_element, element_of
from kubectl_ctrl.value import Value

_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


class _Result(Value):
    """The problems of one value, and the number of checks that succeeded: the best alternative has the most."""

    problems: list[Problem]
    matches: int = 0


def problems(obj: Obj, old: Obj | None, schema: Obj) -> list[Problem]:
    """All violations of the schema that this write adds."""
    required = [name for name in schema.get("required") or () if name not in _EVERY_OBJECT]
    properties = {name: one for name, one in (schema.get("properties") or {}).items() if name not in _EVERY_OBJECT}
    schema = {**schema, "type": "object", "required": required, "properties": properties}
    new, before = _own(obj), ABSENT if old is None else _own(old)
    found = [*_checked(new, before, schema, "").problems, *_embedded(new, schema, "")]
    if old is None or not any(_duplicates(before, schema, "")):
        found += _duplicates(new, schema, "")
    return found


def of_value(value: Any, schema: Obj) -> list[Problem]:
    """The violations of a schema by one value, such as its default."""
    return _result(value, ABSENT, schema, "").problems


def _own(obj: Obj) -> Obj:
    return {key: value for key, value in obj.items() if key not in _EVERY_OBJECT}


def _checked(value: Any, old: Any, schema: Obj, path: str) -> _Result:
    result = _result(value, old, schema, path)
    if result.problems and old is not ABSENT and same(old, value):
        return _Result([], result.matches)
    return result


def _result(value: Any, old: Any, schema: Obj, path: str) -> _Result:
    wrong = type_problem(value, schema, path)
    found, matches = ([wrong], 0) if wrong else ([], 2)
    if value is not None:
        for part in (_combined(value, old, schema, path), _inside(value, old, schema, path)):
            found += part.problems
            matches += part.matches
    enum = schema.get("enum")
    if enum and not any(type(one) is type(value) and one == value for one in enum):
        supported = ", ".join(_quoted(one) if isinstance(one, str) else f'"{_json(one)}"' for one in enum)
        message = f"Unsupported value: {_shown(value)}: supported values: {supported}"
        found.append(Problem(field=path, reason="FieldValueNotSupported", message=message))
    return _Result(found, matches)


def type_problem(value: Any, schema: Obj, path: str) -> Problem | None:
    wanted = "integer,string" if schema.get("x-kubernetes-int-or-string") else schema.get("type") or ""
    if not wanted or (value is None and schema.get("nullable")):
        return None
    given = _NAMES.get(type(value), "null")
    fits = given in wanted.split(",") or (given == "integer" and wanted == "number")
    if fits or (isinstance(value, float) and value.is_integer() and "integer" in wanted):
        return None
    message = f'Invalid value: "{given}": {path} in body must be of type {wanted}: "{given}"'
    return Problem(field=path, reason="FieldValueTypeInvalid", message=message)


def _inside(value: Any, old: Any, schema: Obj, path: str) -> _Result:
    match value:
        case dict():
            return _object(value, old, schema, path)
        case list():
            return _list(value, old, schema, path)
        case str():
            found = list(_string_problems(value, schema, path))
        case bool():
            found = []
        case _:
            found = list(_number_problems(value, schema, path))
    return _Result(found, 1)


# -- objects and lists


def _object(value: Obj, old: Any, schema: Obj, path: str) -> _Result:
    found: list[Problem] = []
    matches = 0
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        found.append(_invalid(path, len(value), f"{path} in body should have at least {least} properties"))
    if most is not None and len(value) > most:
        found.append(_too_many(path, len(value), most))
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    atomic = schema.get("x-kubernetes-map-type") == "atomic" or not isinstance(old, dict)
    for key, item in value.items():
        inner = properties.get(key, additional if isinstance(additional, dict) else None)
        if inner is not None:
            part = _checked(item, ABSENT if atomic else old.get(key, ABSENT), inner, _join(path, key))
            found += part.problems
            matches += part.matches
    for name in schema.get("required") or ():
        if name not in value:
            found.append(Problem(field=_join(path, name), reason="FieldValueRequired", message="Required value"))
    return _Result(found, matches)


def _list(value: list[Any], old: Any, schema: Obj, path: str) -> _Result:
    found: list[Problem] = []
    matches, items = 1, schema.get("items")
    keyed = schema.get("x-kubernetes-list-type") == "map" and isinstance(old, list)
    before = by_element(old, schema) if keyed else {}
    for place, item in enumerate(value if items else ()):
        was = before.get(element_of(item, schema), ABSENT) if keyed else ABSENT
        part = _checked(item, was, items or {}, f"{path}[{place}]")
        found += part.problems
        matches += part.matches
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        found.append(_invalid(path, len(value), f"{path} in body should have at least {least} items"))
    if most is not None and len(value) > most:
        found.append(_too_many(path, len(value), most))
    return _Result(found, matches)


def _too_many(path: str, count: int, most: int) -> Problem:
    message = f"Too many: {count}: must have at most {most} items"
    return Problem(field=path, reason="FieldValueTooMany", message=message)


# -- allOf, anyOf, oneOf, not


def _combined(value: Any, old: Any, schema: Obj, path: str) -> _Result:
    found: list[Problem] = []
    matches = 0
    for name in ("anyOf", "oneOf", "allOf"):
        parts = [_result(value, old, one, path) for one in schema.get(name) or ()]
        if parts:
            one = _any(parts, path) if name == "anyOf" else _one(parts, path) if name == "oneOf" else _all(parts, path)
            found += one.problems
            matches += one.matches
    if "not" in schema and not _result(value, old, schema["not"], path).problems:
        found.append(_general(f'"{path}" must not validate the schema (not)'))
    return _Result(found, matches)


def _any(parts: list[_Result], path: str) -> _Result:
    valid = [part for part in parts if not part.problems]
    if valid:
        return valid[0]
    best = max(parts, key=lambda part: part.matches)
    return _Result([_general(f'"{path}" must validate at least one schema (anyOf)'), *best.problems], best.matches)


def _one(parts: list[_Result], path: str) -> _Result:
    valid = [part for part in parts if not part.problems]
    if len(valid) == 1:
        return valid[0]
    words = f'"{path}" must validate one and only one schema (oneOf). Found '
    if valid:
        return _Result([_general(f"{words}{len(valid)} valid alternatives")])
    best = max(parts, key=lambda part: part.matches)
    return _Result([_general(f"{words}none valid"), *best.problems], best.matches)


def _all(parts: list[_Result], path: str) -> _Result:
    found = [problem for part in parts for problem in part.problems]
    if found:
        none = ". None validated" if all(part.problems for part in parts) else ""
        found.append(_general(f'"{path}" must validate all the schemas (allOf){none}'))
    return _Result(found, sum(part.matches for part in parts))


def _general(words: str) -> Problem:
    """A problem without a path, which the server shows as Go's nil."""
    return Problem(field="<nil>", reason="FieldValueInvalid", message=f'Invalid value: "": {words}')


# -- plain values


def _string_problems(value: str, schema: Obj, path: str) -> Iterator[Problem]:
    pattern = schema.get("pattern")
    if len(value) > schema.get("maxLength", len(value)):
        message = f"Too long: may not be more than {schema['maxLength']} bytes"
        yield Problem(field=path, reason="FieldValueTooLong", message=message)
    elif len(value) < schema.get("minLength", 0):
        yield _invalid(path, value, f"{path} in body should be at least {schema['minLength']} chars long")
    elif pattern and not patterns.found(pattern, value):
        yield _invalid(path, value, f"{path} in body should match '{pattern}'")
    name = schema.get("format", "")
    if name and schema.get("type", "string") == "string" and not formats.fits(name, value):
        message = f"Invalid value: {_quoted(value)}: {path} in body must be of type {name}: {_quoted(value)}"
        yield Problem(field=path, reason="FieldValueTypeInvalid", message=message)


def _number_problems(value: float, schema: Obj, path: str) -> Iterator[Problem]:
    kind, name = schema.get("type", ""), schema.get("format", "")
    name = name if name in {"integer": ("int32", "int64"), "number": ("float", "double")}.get(kind, ()) else ""
    if kind and not formats.in_range(name, kind, value):
        form = f"with format {name}" if name else "(default format)"
        yield _general(f"Checked value must be of type {kind} {form} in {path}")
    factor, low, high = schema.get("multipleOf"), schema.get("minimum"), schema.get("maximum")
    if isinstance(value, int):  # Go compares integers with truncated bounds
        low, high = (None if bound is None else int(bound) for bound in (low, high))
    if factor and not _divides(factor, value):
        yield _invalid(path, value, f"{path} in body should be a multiple of {_number(factor)}")
    if low is not None and (value <= low if schema.get("exclusiveMinimum") else value < low):
        words = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield _invalid(path, value, f"{path} in body should be {words} {_number(low)}")
    if high is not None and (value >= high if schema.get("exclusiveMaximum") else value > high):
        words = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield _invalid(path, value, f"{path} in body should be {words} {_number(high)}")


def _divides(factor: float, value: float) -> bool:
    if isinstance(value, int) and float(factor).is_integer():
        return value % int(factor) == 0
    return float(value / factor).is_integer()


# -- invariants of the structure


def _embedded(value: Any, schema: Obj, path: str) -> Iterator[Problem]:
    """Objects with x-kubernetes-embedded-resource must have a type."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from _embedded(item, schema.get("items") or {}, f"{path}[{place}]")
    if not isinstance(value, dict):
        return
    if schema.get("x-kubernetes-embedded-resource"):
        for name in ("apiVersion", "kind"):
            if name not in value:
                yield Problem(field=_join(path, name), reason="FieldValueRequired", message="Required value")
            elif not value[name]:
                yield _invalid(_join(path, name), value[name], "must not be empty")
    for item, inner, below in _children(value, schema, path):
        yield from _embedded(item, inner, below)


def _duplicates(value: Any, schema: Obj, path: str) -> Iterator[Problem]:
    """The repeated items of sets, and the items with repeated keys."""
    if isinstance(value, dict):
        for item, inner, below in _children(value, schema, path):
            yield from _duplicates(item, inner, below)
    if not isinstance(value, list):
        return
    seen: dict[str, int] = {}
    for place, item in enumerate(value if schema.get("x-kubernetes-list-type") in ("map", "set") else ()):
        element = _element(item, schema)
        seen[element] = seen.get(element, 0) + 1
        if seen[element] == 2:
            message = f"Duplicate value: {element}"
            yield Problem(field=f"{path}[{place}]", reason="FieldValueDuplicate", message=message)
    for place, item in enumerate(value):
        yield from _duplicates(item, schema.get("items") or {}, f"{path}[{place}]")


def _element(item: Any, schema: Obj) -> str:
    if schema["x-kubernetes-list-type"] == "set" or not isinstance(item, dict):
        return _json(item)
    return _json({key: item[key] for key in sorted(schema.get("x-kubernetes-list-map-keys") or ()) if key in item})


def _children(value: Obj, schema: Obj, path: str) -> Iterator[tuple[Any, Obj, str]]:
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        if isinstance(additional, dict):
            yield item, additional, f"{path}[{key}]"
        elif key in properties:
            yield item, properties[key], _join(path, key)


# -- words


def _invalid(path: str, value: Any, words: str) -> Problem:
    return Problem(field=path, reason="FieldValueInvalid", message=f"Invalid value: {_shown(value)}: {words}")


def _shown(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return encode(value).decode()


def _quoted(text: str) -> str:
    return _json(text)


def _number(number: float) -> str:
    """As Go's %v prints a float64."""
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e21 else repr(number)


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
