"""Every explanation is what its published schema says, and the schema says nothing that no explanation has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from kubectl_ctrl.findings.explanation import explain, explain_attempt
from kubectl_ctrl.findings.health import health
from kubectl_ctrl.render.account_json import account_json, single_json
from kubectl_ctrl.render.health import health_json
from tests.findings.made import attempt, case
from tests.render.test_account import ACCOUNTS, work
from tests.render.test_schemas import FOLDER, FORMATS, schema

NAMES = ("attempt.v1", "explanation.v1")


def errors(document: Any) -> list[str]:
    registry = Registry().with_resources([(schema(one)["$id"], Resource.from_contents(schema(one))) for one in NAMES])
    about = {"$ref": f"urn:kubectl-ctrl:schema:explanation:v1#/$defs/{document['about']}"}
    validator = Draft202012Validator(about, registry=registry, format_checker=FORMATS)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(json.loads(json.dumps(document)))]


def documents() -> Iterator[dict[str, Any]]:
    for made in ACCOUNTS.values():
        yield account_json(explain(made()))
    shown = attempt(1)
    yield single_json(explain_attempt(case(shown), shown, {}))
    yield health_json(health(work()))


def test_each_is_what_the_schema_says() -> None:
    for document in documents():
        assert errors(document) == []


def test_what_the_schema_does_not_say_is_an_error() -> None:
    document = next(documents())
    assert errors({**document, "more": 1})
    assert errors({**document, "verdict": "FINE"})


def test_every_field_of_the_schema_is_in_some_explanation() -> None:
    described = json.loads((FOLDER / "explanation.v1.json").read_text())["$defs"]
    for about in ("object", "attempt", "controller"):
        shown = {name for document in documents() if document["about"] == about for name in document}
        assert shown == set(described[about]["properties"])
