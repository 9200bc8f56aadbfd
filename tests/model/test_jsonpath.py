"""What kubectl's dialect gives; e2e/test_until.py asks real kubectl the same questions."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.jsonpath import JsonPath

DATA: dict[str, Any] = {
    "metadata": {"name": "web", "generation": 1, "annotations": {"example.com/on": "yes", "x": "1"}},
    "spec": {"sizes": [1, 2, 3, 4], "paused": False, "ratio": 1.5, "text": "ä <b>"},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "at": 3},
            {"type": "Failed", "status": "False", "at": 7, "reason": "None"},
        ]
    },
}

# The questions, and the answers of kubectl 1.36.3.
SAID = (
    ("{.metadata.name}", "web"),
    ("{$.metadata.name}", "web"),
    ("name: {.metadata.name}, {.metadata.generation}.", "name: web, 1."),
    ("{.spec.paused}", "false"),
    ("{.spec.ratio}", "1.5"),
    ("{.spec.text}", "ä <b>"),
    ("{.spec.missing}", ""),
    ("{.spec.missing.deeper}", ""),
    ("{.metadata.annotations.example\\.com/on}", "yes"),
    ("{.metadata.annotations['example\\.com/on']}", "yes"),
    ("{.metadata['name','generation']}", "web 1"),
    ("{['metadata.name', 'spec.paused']}", "web false"),
    ("{.spec.sizes}", "[1,2,3,4]"),
    ("{.spec.sizes[*]}", "1 2 3 4"),
    ("{.spec.sizes[0]}", "1"),
    ("{.spec.sizes[-1]}", "4"),
    ("{.spec.sizes[-2]}", "3"),
    ("{.spec.sizes[1:3]}", "2 3"),
    ("{.spec.sizes[:2]}", "1 2"),
    ("{.spec.sizes[2:]}", "3 4"),
    ("{.spec.sizes[0:4:2]}", "1 3"),
    ("{.spec.sizes[-3:-1]}", "2 3"),
    ("{.spec.sizes[0,2]}", "1 3"),
    ("{..type}", "Ready Failed"),
    ("{.status..reason}", "None"),
    ("{.status.conditions[*].type}", "Ready Failed"),
    ('{.status.conditions[?(@.type=="Ready")].status}', "True"),
    ("{.status.conditions[?(@.type=='Ready')].status}", "True"),
    ('{.status.conditions[?(@.type!="Ready")].status}', "False"),
    ("{.status.conditions[?(@.at>3)].type}", "Failed"),
    ("{.status.conditions[?(@.at>=3)].type}", "Ready Failed"),
    ("{.status.conditions[?(@.at<7)].type}", "Ready"),
    ("{.status.conditions[?(@.reason)].type}", "Failed"),
    ('{.status.conditions[?( @.type == "Ready" )].at}', "3"),
    ("{.status.conditions[0]}", '{"at":3,"status":"True","type":"Ready"}'),
    ('{range .status.conditions[*]}{.type}{"="}{.status}{"\\n"}{end}', "Ready=True\nFailed=False\n"),
    ('{range .status.conditions[*]}[{.type}, {.at}] {end}{"end"}', "[Ready, 3] [Failed, 7] end"),
)

# Which kubectl refuses as well, and the place that we name.
WRONG = (
    ("{.metadata.name", 16),
    ("{.spec.sizes[}", 14),
    ("{.spec.sizes['a]}", 14),
    ("{.status.conditions[?(@.type~='a')]}", 29),
    ("{range .spec.sizes[*]}{.}", 26),
    ("{end}", 2),
)


@pytest.mark.parametrize(("source", "said"), SAID)
def test_it_finds_what_kubectl_finds(source: str, said: str) -> None:
    assert JsonPath.parse(source).text(DATA) == said


@pytest.mark.parametrize(("source", "position"), WRONG)
def test_what_is_wrong_is_told_with_its_place(source: str, position: int) -> None:
    with pytest.raises(UsageError, match=f"wrong at position {position}:"):
        JsonPath.parse(source)


@pytest.mark.parametrize(
    "source",
    [
        "{.spec.sizes[4]}",
        "{.spec.sizes[-5]}",
        "{.spec.sizes[3:1]}",
        "{.metadata[0]}",
        '{.status.conditions[?(@.at=="3")].type}',
        "{.status.conditions[?(@.type<true)].type}",
    ],
)
def test_what_cannot_be_asked_of_this_object_is_an_error(source: str) -> None:
    with pytest.raises(UsageError):
        JsonPath.parse(source).text(DATA)


@pytest.mark.parametrize("source", ["metadata.name", ".metadata.name", "{.metadata.name}", "{metadata.name}"])
def test_braces_and_the_first_dot_may_be_left_out_of_a_flag(source: str) -> None:
    assert JsonPath.relaxed(source).find(DATA) == [["web"]]


def test_a_quoted_field_may_have_dots() -> None:
    """Of which kubectl makes a path in every case, so that it finds nothing here."""
    assert JsonPath.parse("{.metadata.annotations['example.com/on']}").text(DATA) == "yes"


def test_each_action_is_found_apart() -> None:
    assert JsonPath.parse("{.spec.sizes[*]} {.spec.missing}").find(DATA) == [[1, 2, 3, 4], []]
