"""The output of `trace` with each of its flags."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.record import RecordedAttempt, RecordedObject, Story
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.render.trace.rows import TraceOptions
from kubectl_ctrl.render.trace.text import subject_lines, trace_lines
from kubectl_ctrl.render.trace.waterfall import waterfall_lines
from kubectl_ctrl.story.scene import Scene, totals
from kubectl_ctrl.value import replace
from tests.golden import Golden
from tests.render import layouts
from tests.render.layouts import in_every_style
from tests.render.samples import FOOS
from tests.render.stories import hostile
from tests.render.traced import EDITED, FAILED, KILLED, MERGED, NOW, RETRIED, SCENE, SECRET, STORY, WEB, body

STYLES = {name: replace(style, primaries={"foo": FOOS}) for name, style in layouts.STYLES.items()}
SHOWING = TraceOptions(now=NOW, about=(FOOS, WEB), body=body)
FLAGS = {
    "trace": SHOWING,
    "trace-calls": replace(SHOWING, calls=True),
    "trace-diff": replace(SHOWING, diff=True),
    "trace-wide": replace(SHOWING, wide=True),
}


def page(style: Style, showing: TraceOptions = SHOWING, story: Story = STORY, scene: Scene = SCENE) -> str:
    return "".join(f"{line}\n" for line in trace_lines(story, scene, showing, style))


def falls(style: Style, showing: TraceOptions = SHOWING) -> str:
    """One after the other, as they are asked for one by one."""

    def lines() -> Iterator[str]:
        for attempt in (EDITED, MERGED, FAILED, RETRIED, KILLED):
            yield from waterfall_lines(attempt, showing, style, where="kind-ctrl")
            yield ""

    return "".join(f"{line}\n" for line in lines())


@pytest.mark.parametrize("name", FLAGS)
def test_the_layout(name: str, golden: Golden) -> None:
    golden(name, in_every_style(lambda style: trace_lines(STORY, SCENE, FLAGS[name], style), STYLES))


def test_echoes_of_all_runs_are_counted() -> None:
    """Each run numbers its reconciles from 1."""
    one, other = (replace(EDITED, id=f"{run}-1", heard=(), echoes=3) for run in ("r7f3", "r7f4"))
    quiet = replace(EDITED, id="r7f5-1", heard=(), echoes=0)
    text = page(STYLES["120"], story=replace(STORY, attempts=(one, other, quiet)))
    assert "6 echoes of own writes in #1: ignored" in text


def test_one_reconcile_in_full(golden: Golden) -> None:
    def draw(style: Style) -> list[str]:
        return falls(style, replace(SHOWING, diff=style.width == 120)).splitlines()

    golden("trace-one", in_every_style(draw, STYLES, folded=False))


def subjects() -> list[RecordedObject]:
    def subject(name: str, namespace: str, last: RecordedAttempt, failures: int) -> RecordedObject:
        key = Request(namespace, name)
        return RecordedObject(
            controller="foo", resource=FOOS, key=key, uid="u", attempts=12, failures=failures, first=0.0, last=last
        )

    return [
        subject("web", "default", MERGED, 0),
        subject("a-name-that-is-rather-long-for-a-terminal", "team-a", FAILED, 3),
        subject("cut", "team-b", KILLED, 0),
    ]


def test_all_objects_of_a_type(golden: Golden) -> None:
    def draw(style: Style) -> list[str]:
        wide, narrow = style.width is None, style.width == 80
        return subject_lines(subjects(), now=NOW, namespaces=not narrow, wide=wide, style=style)

    golden("trace-all", in_every_style(draw, STYLES))


def test_a_name_that_leaves_no_room_has_a_line_of_its_own() -> None:
    long = "a-rather-long-name-that-somebody-in-a-big-company-chose-for-it"
    named = zip(subjects(), ("web", long, "x"), strict=True)
    found = [replace(one, key=Request(one.key.namespace, name)) for one, name in named]
    for namespaces in (False, True):
        lines = subject_lines(found, now=NOW, namespaces=namespaces, wide=False, style=STYLES["80"])
        assert len(lines) == 1 + 3 + 1
        assert lines[2].split()[-1] == long
        assert "retry in 1s" in lines[3] or "FAILED" in lines[3]
        assert lines[3].index("12 ") == lines[1].index("12 ")
        assert max(map(len, lines)) <= 80


def test_through_a_pipe_each_reconcile_is_one_line_with_all_its_causes() -> None:
    lines = page(STYLES["pipe"]).splitlines()
    rows = [line for line in lines if line.lstrip().startswith(("r7f3-", "r0aa-"))]
    assert len(rows) == len(STORY.attempts)
    merged = next(line for line in rows if "r7f3-9 " in line)
    assert merged.count("kube-controller-manager") == 4
    assert "several versions not seen" in merged
    assert "4 more not recorded" in merged
    assert "…" not in merged


def test_text_of_a_cluster_cannot_control_the_terminal() -> None:
    story = hostile()
    showing = TraceOptions(now=NOW, calls=True, diff=True)
    for style in STYLES.values():
        scene = Scene(totals=totals(story.attempts), over={})
        text = page(style, showing, story, scene)
        text += "".join(
            f"{line}\n" for one in story.attempts for line in waterfall_lines(one, showing, style, where="x\x1b[2J")
        )
        assert not [char for char in text if char != "\n" and (ord(char) < 32 or 127 <= ord(char) < 160)]
        assert "\u202e" not in text


def test_a_secret_shows_its_keys_alone() -> None:
    story = replace(STORY, attempts=(SECRET,))
    text = page(STYLES["120"], FLAGS["trace-diff"], story)
    assert "Secret/tls data.key ***→***" in text
    assert "-data.key: ***" in text


LONG = replace(FAILED.verdict, message="RuntimeError: " + "e" * 10_000) if FAILED.verdict else None


@pytest.mark.parametrize("name", ["80", "120", "ascii"])
def test_a_long_error_takes_three_lines_and_is_not_repeated(name: str) -> None:
    """Whatever an API answers, the reconciles stay in sight; the whole of it stands where one of them is asked for."""
    cause = replace(RETRIED.causes[0], detail="RuntimeError: " + "e" * 10_000)
    failed = [
        replace(FAILED, id=f"r7f3-{number}", causes=(cause,), causes_total=1, calls=(), verdict=LONG)
        for number in (20, 21, 22)
    ]
    text = page(STYLES[name], story=replace(STORY, attempts=tuple(failed), runs=STORY.runs[:1], older=()))
    assert text.count("(full text with --id r7f3-20)") == 1
    assert text.count("the same error as #20") == 2
    rows = text[text.index("OUTCOME") : text.index("NEXT")].splitlines()[1:]
    assert max(map(len, rows)) <= int(name if name.isdigit() else 80)
    assert len([line for line in rows if "eee" in line]) == 3 + 3  # the error once, and what each was a retry after
    assert "e" * 10_000 in page(STYLES["pipe"], story=replace(STORY, attempts=tuple(failed))).replace("\n", "")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_the_header_wraps_between_words_and_keeps_names_whole(width: int) -> None:
    name = "a-name-of-36-characters-as-companies"
    key = Request("team-with-a-name", name)
    over = {"r7f3": "exited unexpectedly, last seen 2s ago"}
    style = replace(STYLES["80"], width=width)
    story = replace(STORY, runs=STORY.runs[:1], key=key)
    head = page(style, story=story, scene=replace(SCENE, over=over)).split("\n\n")[0]
    assert name in head
    assert "last seen 2s ago" in " ".join(head.split())
    assert "…" not in head
    assert max(map(len, head.splitlines())) <= max(width, len(f"Foo {key}"))
