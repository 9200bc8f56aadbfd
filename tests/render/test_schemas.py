"""Every document is what its published schema says, and the schema says nothing that no document has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.attempt import Echoed, Intent, Outcome, Raised, Read, Verdict, WriteRequest
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.record import Made, Recorded, Source, Story, Subject
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.render.attempt_json import attempt_json
from kubectl_ctrl.render.trace.formats import export
from kubectl_ctrl.value import replace
from tests.house.checkout import REPOSITORY
from tests.render.samples import FOOS, NOON
from tests.render.stories import call, hostile, story, woken

FOLDER = REPOSITORY / "docs/schemas"
NAMES = ("attempt.v1", "trace.v1")
FORMATS = FormatChecker(())


@FORMATS.checks("date-time", raises=ValueError)
def is_rfc3339(text: object) -> bool:
    return not isinstance(text, str) or parse_rfc3339(text) > 0


def schema(name: str, *, closed: bool = True) -> Any:
    """A published schema; closed, it allows no field that it does not describe."""
    found = json.loads((FOLDER / f"{name}.json").read_text())
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


def check(name: str, document: Any) -> None:
    registry = Registry().with_resources([(schema(one)["$id"], Resource.from_contents(schema(one))) for one in NAMES])
    validator = Draft202012Validator(schema(name), registry=registry, format_checker=FORMATS)
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)] == []


def full() -> Story:
    """A story in which every field has something to say."""
    base = story(60, objects=3)
    made = Made(
        call=call("web", "create", DEPLOYMENTS, NOON, 0.1, id="r7f3-1.9", code=409, reason="Conflict", error="x")
    )
    raised = Raised(error="NotFound", message="It is not there.", code=404)
    web = Request("default", "web")
    first = replace(
        base.attempts[0],
        causes=(
            *base.attempts[0].causes,
            woken(CauseKind.MODIFIED, NOON, resource=FOOS, key=web, uid="u", relisted=True, new_version="1"),
            woken(CauseKind.ADDED, NOON, resource=FOOS, key=web, uid="u", writers=("kubectl",)),
            woken(CauseKind.MANUAL, NOON, detail="me"),
        ),
        verdict=Verdict(outcome=Outcome.TERMINAL, message="no", error_id="CTRL-ERROR", where="a.py:1"),
        reads=(Read(verb="live", resource=FOOS, query="default/web", found=(("u", "1"),) * 101, raised=raised),),
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
        heard=(Echoed(attempt="r7f3-1", request=web, uid="u", version="3", after=0.2),),
        traceback="Traceback",
    )
    running: Recorded = replace(base.attempts[1], took=None, verdict=None)
    attempts = (first, running, replace(running, id="r7f3-3", interrupted=True), *base.attempts[3:])
    subject = Subject(
        controller="foo", resource=FOOS, key=web, uid="u", attempts=60, failures=3, first=NOON, last=base.attempts[-1]
    )
    return replace(base, attempts=attempts, subjects=(subject,))


@pytest.mark.parametrize("shown", [story(60), full(), hostile(), replace(story(2), source=Source.INFERRED)])
def test_what_trace_prints_is_what_the_schemas_say(shown: Story) -> None:
    check("trace.v1", json.loads("".join(export("json", shown))))
    for line in export("jsonl", shown):
        check("attempt.v1", json.loads(line))


def test_a_story_of_nothing_is_one_too() -> None:
    check("trace.v1", json.loads("".join(export("json", Story(at=NOON)))))


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_explained(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    for part in parts(schema(name)):
        for field, told in part.get("properties", {}).items():
            assert "$ref" in told or told["description"].endswith("."), field


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_is_told_to_expect_more_fields(name: str) -> None:
    assert "ignores what it does not know" in schema(name)["description"]
    assert all("additionalProperties" not in part for part in parts(schema(name, closed=False)) if "properties" in part)


def test_words_of_which_one_stands_are_all_there() -> None:
    told = schema("attempt.v1")
    assert told["$defs"]["cause"]["properties"]["kind"]["enum"] == [kind.value for kind in CauseKind]
    outcomes = [outcome.value for outcome in Outcome]
    assert sorted(told["properties"]["outcome"]["enum"]) == sorted([*outcomes, "running", "interrupted"])
    assert told["properties"]["source"]["enum"] == [source.value for source in Source]


def test_no_field_is_made_up() -> None:
    """Each field that is described stands in some document."""
    documents = [json.loads("".join(export("json", one))) for one in (story(60), full())]
    seen = {field for document in documents for part in parts(document) for field in part}
    told = {field for name in NAMES for part in parts(schema(name)) for field in part.get("properties", {})}
    assert told - seen == set()


def test_what_was_given_to_be_written_is_not_told() -> None:
    assert "hunter2" not in "".join(export("json", full()))


def test_a_read_of_many_says_how_many() -> None:
    read = attempt_json(full().attempts[0])["reads"][0]
    assert (len(read["found"]), read["foundTotal"], read["error"], read["code"]) == (100, 101, "NotFound", 404)
