"""What holds for every form alike."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kubectl_ctrl.model.record import RecordedAttempt, Story
from kubectl_ctrl.render.trace.formats import FILES, FORMS, export
from kubectl_ctrl.value import replace
from tests.house.checkout import REPOSITORY
from tests.render.stories import NASTY, hostile, story

STORIES = [story(3), story(60, objects=4), hostile(), replace(story(1), attempts=())]
# Everything that drives a terminal or turns text around; a tab and a line's end do not.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shown", STORIES)
def test_text_that_ends_with_a_line_and_drives_nothing(form: str, shown: Story) -> None:
    text = "".join(export(form, shown))
    assert text.endswith("\n") or not shown.attempts
    assert CONTROL.findall(text) == []
    assert text.encode() or not shown.attempts


@pytest.mark.parametrize("form", FORMS)
def test_values_of_secrets_are_never_shown(form: str) -> None:
    text = "".join(export(form, hostile()))
    assert "***" in text
    assert "<hidden>" not in text
    assert "Marker" not in text


@pytest.mark.parametrize("form", FORMS)
def test_a_name_of_any_length_stays_whole_but_in_a_graph(form: str) -> None:
    whole = "n" * 300 in "".join(export(form, hostile()))
    assert whole == (form != "dot")
    assert NASTY.endswith("n" * 300)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_long_story_comes_in_pieces(form: str) -> None:
    pieces = list(export(form, story(300, objects=3)))
    assert max(map(len, pieces)) < sum(map(len, pieces)) / 3


class Watched(tuple[RecordedAttempt, ...]):
    """Attempts that count how often they were gone through."""

    __slots__ = ()
    walks = 0

    def __iter__(self) -> Iterator[RecordedAttempt]:
        Watched.walks += 1
        return super().__iter__()


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_done_before_it_is_asked_for(form: str) -> None:
    Watched.walks = 0
    export(form, replace(story(3), attempts=Watched(story(3).attempts)))
    assert Watched.walks == 0


def test_what_a_terminal_cannot_show_is_told_apart() -> None:
    assert set(FILES) <= set(FORMS)
    assert {"json", "jsonl", "yaml", "dot"} == set(FORMS) - set(FILES)


def test_a_form_waits_only_for_what_it_needs() -> None:
    program = (
        "import sys; from kubectl_ctrl.model.record import Story; "
        "from kubectl_ctrl.render.trace.formats import export; "
        "list(export('jsonl', Story(at=0.0))); print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert {"yaml", "hashlib", "html", "asyncio", "sqlite3"}.isdisjoint(done.stdout.split())
