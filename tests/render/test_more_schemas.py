"""The documents of queue, rbac, doctor and inferred traces are what their published schemas say."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kubectl_ctrl.doctor.diagnosis import Group, Mark, Outcome
from kubectl_ctrl.findings.inference import Evidence
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.render.diagnosis import diagnosis_json
from kubectl_ctrl.render.inference import inferred_json
from kubectl_ctrl.render.queue import Snapshot, queue_json
from kubectl_ctrl.render.rights import unused_json
from kubectl_ctrl.value import replace
from kubectl_ctrl.workqueue.values import Stage
from tests.render.samples import NOON
from tests.render.test_diagnosis import FOUND as FOUND_WRONG
from tests.render.test_diagnosis import MENDED
from tests.render.test_inference import FOUND
from tests.render.test_queue import ALL
from tests.render.test_rights import ACCOUNT, LIST
from tests.render.test_schemas import FORMATS, parts, schema

DOCUMENTS = {
    "queue.v1": queue_json(Snapshot(sightings=ALL, now=NOON)),
    "inferred.v1": inferred_json(FOUND),
    "doctor.v1": diagnosis_json(replace(FOUND_WRONG, repairs=MENDED.repairs)),
    "rights.v1": unused_json(replace(ACCOUNT, unused=frozenset({LIST}), since=NOON)),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_what_its_schema_says(name: str) -> None:
    validator = Draft202012Validator(schema(name), format_checker=FORMATS)
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(DOCUMENTS[name])] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_field_is_explained_and_more_may_come(name: str) -> None:
    told = schema(name, closed=False)
    Draft202012Validator.check_schema(told)
    assert "ignores what it does not know" in told["description"]
    for part in parts(told):
        assert "additionalProperties" not in part
        for field, what in part.get("properties", {}).items():
            assert what["description"].endswith("."), field


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_field_is_made_up(name: str) -> None:
    described = {field for part in parts(schema(name)) for field in part.get("properties", {})}
    assert described == {field for part in parts(DOCUMENTS[name]) for field in part}


def test_words_of_which_one_stands_are_all_there() -> None:
    one = properties(schema("queue.v1")["properties"]["controllers"])
    assert one["life"]["enum"] == [life.value for life in Life]
    assert properties(one["entries"])["state"]["enum"] == [stage.value for stage in Stage]
    doctor = schema("doctor.v1")["properties"]
    assert properties(doctor["checks"])["state"]["enum"] == [mark.value for mark in Mark]
    assert properties(doctor["checks"])["group"]["enum"] == [group.value for group in Group]
    assert properties(doctor["repairs"])["state"]["enum"] == [outcome.replace(" ", "-") for outcome in Outcome]
    signs = schema("inferred.v1")["properties"]["signs"]
    assert properties(signs)["evidence"]["enum"] == [evidence.value for evidence in Evidence]


def properties(array: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = array["items"]["properties"]
    return found
