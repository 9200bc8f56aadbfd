"""The page as text; what it does in a browser is tested in tests/browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.record import Story
from kubectl_ctrl.render.trace.formats import export
from kubectl_ctrl.value import replace
from tests.render.stories import NASTY, hostile, story


class Reader(HTMLParser):
    """A page's elements, and the text in each kind of them."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        if tag not in ("meta", "input", "br"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self._open:
            self.texts[tag][-1] += data


def read(shown: Story) -> Reader:
    reader = Reader()
    reader.feed("".join(export("html", shown)))
    reader.close()
    return reader


def data_of(reader: Reader) -> Any:
    return json.loads(reader.texts["script"][0])


STORIES = [story(3), story(90, objects=4), hostile(), replace(story(1), attempts=())]


@pytest.mark.parametrize("shown", STORIES)
def test_nothing_is_loaded_from_anywhere(shown: Story) -> None:
    for tag, attributes in read(shown).elements:
        assert not {"src", "srcset", "action", "data", "style", "poster", "ping"} & attributes.keys(), tag
        assert not any(name.startswith("on") for name in attributes)
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert tag != "a" or (attributes["href"] or "").startswith("#")


@pytest.mark.parametrize("shown", STORIES)
def test_its_policy_lets_only_its_own_script_and_style_work(shown: Story) -> None:
    reader = read(shown)
    policy = next(one["content"] for tag, one in reader.elements if one.get("http-equiv") == "Content-Security-Policy")
    assert policy
    rules = {name: words for name, *words in (rule.split() for rule in policy.split("; "))}
    assert rules["default-src"] == ["'none'"]
    for rule, text in (("script-src", reader.texts["script"][-1]), ("style-src", reader.texts["style"][0])):
        assert rules[rule] == [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"]
    assert len(reader.texts["script"]) == 2
    assert len(reader.texts["style"]) == 1


@pytest.mark.parametrize("shown", STORIES)
def test_the_table_has_the_rows_of_the_timeline(shown: Story) -> None:
    reader = read(shown)
    rows = [one for tag, one in reader.elements if tag == "tr" and "data-i" in one]
    assert [row["data-i"] for row in rows] == [str(place) for place in range(len(shown.attempts))]
    assert [one["id"] for one in data_of(reader)["attempts"]] == [attempt.id for attempt in shown.attempts]
    assert len(reader.texts.get("th", ())) == 8 + len(rows)


def test_hostile_text_is_shown_and_does_nothing() -> None:
    text = "".join(export("html", hostile()))
    assert len(re.findall("<script", text, re.IGNORECASE)) == len(re.findall("</script", text, re.IGNORECASE)) == 2
    assert re.findall("[\u202e\u200f\u2028\x00\x1b]", text) == []
    reader = read(hostile())
    assert "b" not in {tag for tag, _ in reader.elements[: len(reader.elements) // 2]}
    assert '</script><!--<b>"' in reader.texts["td"][1]
    cause = data_of(reader)["attempts"][0]["causes"][0]
    assert cause["changes"][0]["old"].startswith('</script><!--<b>"')
    assert "\\u202egpj" in cause["changes"][0]["old"]
    assert NASTY not in json.dumps(data_of(reader))


def test_values_of_secrets_stay_hidden() -> None:
    secret = data_of(read(hostile()))["attempts"][1]
    assert secret["causes"][0]["changes"] == [
        {"path": "data.key", "old": "***", "new": "***"},
        {"path": "data.crt", "new": "***"},
    ]
    assert secret["calls"][0]["changes"] == [{"path": "data.key", "old": "***", "new": "***"}]


def test_times_have_dates_if_attempts_span_several_days() -> None:
    shown = story(2)
    first, second = shown.attempts
    assert read(shown).texts["time"] == ["12:00:00.001", "12:00:00.565"]
    later = replace(second, started=second.started + 86400)
    assert read(replace(shown, attempts=(first, later))).texts["time"] == ["01-01 12:00:00.001", "01-02 12:00:00.565"]


def test_the_title_and_the_facts() -> None:
    reader = read(story(60))
    assert reader.texts["title"] == ["Foo default/web · kubectl ctrl trace"]
    facts = dict(zip(reader.texts["dt"], reader.texts["dd"], strict=False))
    assert facts["attempts"] == "60, of which 37 wrote and 3 failed"
    assert facts["recorded"] == "as of 2026-01-01 13:51:16 UTC"
    assert read(story(60, objects=3)).texts["h1"] == ["all Foo"]


def test_rows_name_their_objects_if_there_are_several() -> None:
    """As of a Deployment, which is told by the attempts that wrote it."""
    shown = story(3)
    first, *rest = shown.attempts
    other = replace(first, request=Request("default", "shop"))
    assert data_of(read(shown))["single"]
    assert not data_of(read(replace(shown, attempts=(other, *rest))))["single"]
