"""The published schemas, and the errors of a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from kubectl_ctrl.clock import parse_rfc3339
from tests.house.checkout import REPOSITORY

_FOLDER = REPOSITORY / "docs/schemas"
_REFERRED = ("attempt.v1", "trace.v1")
_FORMATS = FormatChecker(())


@_FORMATS.checks("date-time", raises=ValueError)
def _is_rfc3339(text: object) -> bool:
    return not isinstance(text, str) or parse_rfc3339(text) > 0


def schema(name: str, *, closed: bool = True) -> Any:
    """A published schema; closed, it allows no field that it does not describe."""
    found = json.loads((_FOLDER / f"{name}.json").read_text())
    for part in parts(found):
        if closed and "properties" in part:
            part["additionalProperties"] = False
    return found


def parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for item in value.values():
            yield from parts(item)
    elif isinstance(value, list):
        for item in value:
            yield from parts(item)


@cache
def _validator(name: str, about: str) -> Draft202012Validator:
    schemas = {one: schema(one) for one in {*_REFERRED, name}}
    registry = Registry().with_resources([(one["$id"], Resource.from_contents(one)) for one in schemas.values()])
    root = {"$ref": f"{schemas[name]['$id']}#{about}"}
    return Draft202012Validator(root, registry=registry, format_checker=_FORMATS)


def errors(name: str, document: Any) -> list[str]:
    """The errors of a document; an explanation is checked by the definition of its subject."""
    about = f"/$defs/{document['about']}" if name == "explanation.v1" else ""
    found = _validator(name, about).iter_errors(json.loads(json.dumps(document)))
    return [f"{error.json_path}: {error.message}" for error in found]


def check(name: str, document: Any) -> None:
    assert errors(name, document) == []
