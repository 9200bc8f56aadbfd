"""Documents match their published schemas, and the schemas describe no field that no document has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kubectl_ctrl.doctor.diagnosis import Group, Mark, RepairOutcome
from kubectl_ctrl.findings.account import UnreadyObject
from kubectl_ctrl.findings.explanation import explain, explain_attempt
from kubectl_ctrl.findings.health import health
from kubectl_ctrl.findings.inference import Evidence
from kubectl_ctrl.model.attempt import DroppedEcho, Intent, ObjectRead, Outcome, RaisedError, Verdict, WriteRequest
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.record import FactSource, RecordedAttempt, RecordedCall, RecordedObject, Story
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.render.account_json import account_json, single_json
from kubectl_ctrl.render.attempt_json import attempt_json
from kubectl_ctrl.render.diagnosis import diagnosis_json
from kubectl_ctrl.render.health import health_json
from kubectl_ctrl.render.inference import inferred_json
from kubectl_ctrl.render.inventory import inventory_json, run_json
from kubectl_ctrl.render.plan import plan_json
from kubectl_ctrl.render.queue import QueueSnapshot, queue_json
from kubectl_ctrl.render.replay import replay_json
from kubectl_ctrl.render.rights import unused_json
from kubectl_ctrl.render.trace.formats import export
from kubectl_ctrl.value import replace
from kubectl_ctrl.workqueue.values import KeyStage
from tests.findings.made import attempt, case
from tests.render import plans, test_diagnosis, test_inference, test_inventory, test_plan, test_replay
from tests.render.samples import FOOS, NOON
from tests.render.schemas import check, errors, parts, schema
from tests.render.stories import call, hostile, story, triggered
from tests.render.test_account import ACCOUNTS, work
from tests.render.test_queue import ALL
from tests.render.test_rights import ACCOUNT, LIST


def full() -> Story:
    """A story in which every field has something to say."""
    base = story(60, objects=3)
    made = RecordedCall(
        call=call("web", "create", DEPLOYMENTS, NOON, 0.1, id="r7f3-1.9", code=409, reason="Conflict", error="x")
    )
    raised = RaisedError(error="NotFound", message="It is not there.", code=404)
    web = Request("default", "web")
    first = replace(
        base.attempts[0],
        causes=(
            *base.attempts[0].causes,
            triggered(CauseKind.MODIFIED, NOON, resource=FOOS, key=web, uid="u", relisted=True, new_version="1"),
            triggered(CauseKind.ADDED, NOON, resource=FOOS, key=web, uid="u", writers=("kubectl",)),
            triggered(CauseKind.MANUAL, NOON, detail="me"),
        ),
        verdict=Verdict(outcome=Outcome.TERMINAL, message="no", error_id="CTRL-ERROR", where="a.py:1"),
        reads=(ObjectRead(verb="live", resource=FOOS, query="default/web", found=(("u", "1"),) * 101, raised=raised),),
        wishes=(
            WriteRequest(
                verb="ensure",
                resource=DEPLOYMENTS,
                key=web,
                body='{"data": {"password": "hunter2"}}',
                options=(("leave_out", "spec"),),
                how="applied",
                uid="u",
                version="2",
                raised=raised,
                calls=("r7f3-1.9",),
            ),
        ),
        calls=(made,),
        background=(made,),
        intents=(Intent(type="Normal", reason="Scaled", message="to 3", about=web),),
        heard=(DroppedEcho(attempt="r7f3-1", request=web, uid="u", version="3", after=0.2),),
        traceback="Traceback",
    )
    running: RecordedAttempt = replace(base.attempts[1], took=None, verdict=None)
    attempts = (first, running, replace(running, id="r7f3-3", interrupted=True), *base.attempts[3:])
    subject = RecordedObject(
        controller="foo", resource=FOOS, key=web, uid="u", attempts=60, failures=3, first=NOON, last=base.attempts[-1]
    )
    return replace(base, attempts=attempts, subjects=(subject,))


def written(form: str, *stories: Story) -> list[Any]:
    texts = ["".join(export(form, one)) for one in stories]
    return [json.loads(part) for text in texts for part in (text.splitlines() if form == "jsonl" else [text])]


STORIES = (story(60), full(), hostile(), replace(story(2), source=FactSource.INFERRED))
SINGLE = attempt(1)
DOCUMENTS: dict[str, Sequence[Any]] = {
    "attempt.v1": written("jsonl", *STORIES),
    "trace.v1": written("json", *STORIES, Story(at=NOON)),
    "explanation.v1": [
        *(account_json(explain(made())) for made in ACCOUNTS.values()),
        single_json(explain_attempt(case(SINGLE), SINGLE, {})),
        health_json(replace(health(work()), unready=(UnreadyObject(key=SINGLE.request, condition="Ready=False"),))),
    ],
    "plan.v1": [
        plan_json(plan, objects=objects)
        for plan in (plans.MIXED, *test_plan.OTHERS.values())
        for objects in (False, True)
    ],
    "replay.v1": [
        replay_json(one, code="./mine.py")
        for one in (test_replay.SAME, test_replay.DIFFERING, test_replay.UNKNOWN, test_replay.CUT)
    ],
    "recording.v1": [
        inventory_json(test_inventory.FOUND),
        inventory_json(replace(test_inventory.FOUND, runs=(), clusters=())),
    ],
    "run.v1": [run_json(one, test_inventory.FOUND) for one in test_inventory.FOUND.runs],
    "queue.v1": [queue_json(QueueSnapshot(sightings=ALL, now=NOON))],
    "inferred.v1": [inferred_json(test_inference.FOUND)],
    "doctor.v1": [diagnosis_json(replace(test_diagnosis.FOUND, repairs=test_diagnosis.MENDED.repairs))],
    "rights.v1": [unused_json(replace(ACCOUNT, unused=frozenset({LIST}), since=NOON))],
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_matches_its_schema(name: str) -> None:
    for document in DOCUMENTS[name]:
        check(name, document)
    assert errors(name, {**DOCUMENTS[name][0], "more": 1})


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_field_is_described_and_more_may_come(name: str) -> None:
    found = schema(name, closed=False)
    Draft202012Validator.check_schema(found)
    assert "ignores what it does not know" in found["description"]
    for part in parts(found):
        assert "properties" not in part or "additionalProperties" not in part
        for field, about in part.get("properties", {}).items():
            assert "$ref" in about or about["description"].endswith("."), field


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_described_field_is_in_some_document(name: str) -> None:
    described = {field for part in parts(schema(name)) for field in part.get("properties", {})}
    assert described <= {field for part in parts(DOCUMENTS[name]) for field in part}


def test_enumerations_are_complete() -> None:
    told = schema("attempt.v1")
    assert told["$defs"]["cause"]["properties"]["kind"]["enum"] == [kind.value for kind in CauseKind]
    outcomes = [outcome.value for outcome in Outcome]
    assert sorted(told["properties"]["outcome"]["enum"]) == sorted([*outcomes, "running", "interrupted"])
    assert told["properties"]["source"]["enum"] == [source.value for source in FactSource]
    one = properties(schema("queue.v1")["properties"]["controllers"])
    assert one["life"]["enum"] == [life.value for life in Life]
    assert properties(one["entries"])["state"]["enum"] == [stage.value for stage in KeyStage]
    doctor = schema("doctor.v1")["properties"]
    assert properties(doctor["checks"])["state"]["enum"] == [mark.value for mark in Mark]
    assert properties(doctor["checks"])["group"]["enum"] == [group.value for group in Group]
    assert properties(doctor["repairs"])["state"]["enum"] == [one.replace(" ", "-") for one in RepairOutcome]
    signs = schema("inferred.v1")["properties"]["signs"]
    assert properties(signs)["evidence"]["enum"] == [evidence.value for evidence in Evidence]


def properties(array: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = array["items"]["properties"]
    return found


def test_the_object_of_a_requested_change_is_left_out() -> None:
    assert "hunter2" not in json.dumps(written("json", full()))


def test_a_read_of_many_objects_has_their_number() -> None:
    read = attempt_json(full().attempts[0])["reads"][0]
    assert (len(read["found"]), read["foundTotal"], read["error"], read["code"]) == (100, 101, "NotFound", 404)
