"""Steps as lines, as objects and as a spinner on a real terminal of so many columns."""

from __future__ import annotations

import fcntl
import io
import json
import logging
import os
import pty
import re
import struct
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import pytest
from jsonschema import Draft202012Validator

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output import progress
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.cli.output.progress import Progress
from kubectl_ctrl.clusters.provider import ClusterSpec
from kubectl_ctrl.devcluster.down import STEPS as DOWN
from kubectl_ctrl.devcluster.up import UpOptions
from kubectl_ctrl.loader.sources import resolve
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.user import User
from tests.house.checkout import REPOSITORY

STEPS = ("provider", "cluster", "use")
EVERYTHING = UpOptions(
    name="ctrl",
    provider="auto",
    spec=ClusterSpec(),
    use=True,
    images=("mine:dev",),
    sourced=resolve(["foo"]),
    example=True,
    detach=True,
)


class Text(io.StringIO):
    """A file of lines in some encoding."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


def app(encoding: str = "utf-8", environ: Mapping[str, str] | None = None) -> App:
    return App(out=io.StringIO(), err=Text(encoding), user=User(environ or {}))


def said(app: App) -> str:
    assert isinstance(app.err, io.StringIO)
    return app.err.getvalue()


def go(progress: Progress, clock: FakeClock) -> None:
    with progress.step("provider", "provider") as step:
        clock.suspend(0.14)
        step.text = "kwok v0.7.0"
    with progress.step("cluster", "cluster ctrl (kwok)") as step:
        step.note("starting etcd")
        clock.suspend(14.8)
        step.text = "cluster ctrl (kwok, v1.36.3)"
    progress.skip("use", "nobody asked for it")
    progress.say("context kwok-ctrl")


def test_a_log_gets_a_line_for_each_step() -> None:
    there, clock = app(), FakeClock()
    go(Progress(there, "auto", STEPS, clock), clock)
    assert said(there) == (
        " ✓ kwok v0.7.0                                                          0.1s\n"
        " ✓ cluster ctrl (kwok, v1.36.3)                                        14.8s\n"
        "context kwok-ctrl\n"
    )


@pytest.mark.parametrize(("encoding", "environ"), [("ascii", {}), ("utf-8", {"TERM": "dumb"})])
def test_what_cannot_show_signs_gets_words(encoding: str, environ: Mapping[str, str]) -> None:
    there, clock = app(encoding, environ), FakeClock()
    go(Progress(there, "auto", STEPS, clock), clock)
    assert said(there).splitlines()[:2] == [
        " ok kwok v0.7.0                                                         0.1s",
        " ok cluster ctrl (kwok, v1.36.3)                                       14.8s",
    ]
    assert said(there).isascii()


def test_a_step_that_takes_long_is_told_before_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SLOW", 0.01)
    there, waiting = app(), threading.Event()
    with Progress(there, "plain", STEPS, FakeClock()).step("cluster", "cluster ctrl (kind)"):
        for _ in range(500):
            if said(there):
                break
            waiting.wait(0.01)
        assert said(there) == " … cluster ctrl (kind)\n"


def test_a_step_that_fails_says_so_and_lets_the_error_pass() -> None:
    there, clock = app("ascii"), FakeClock()
    progress = Progress(there, "plain", STEPS, clock)
    with pytest.raises(ValueError, match="broken"), progress.step("provider", "provider"):
        raise ValueError("broken")
    assert said(there) == " FAIL provider: not done                                                0.0s\n"


def test_machines_get_an_object_for_everything_at_once() -> None:
    there, clock = app(), FakeClock()
    progress = Progress(there, "json", STEPS, clock)
    with progress.step("provider", "provider"):
        first = json.loads(said(there))
        assert first == {"action": "step", "step": 1, "of": 3, "name": "provider", "state": "began", "text": "provider"}
    go(progress, clock)
    found = [json.loads(line) for line in said(there).splitlines()]
    assert [(one.get("name"), one["state"]) for one in found[2:]] == [
        ("provider", "began"),
        ("provider", "ended"),
        ("cluster", "began"),
        ("cluster", "note"),
        ("cluster", "ended"),
        ("use", "skipped"),
        (None, "said"),
    ]
    assert found[6] == {
        "action": "step",
        "step": 2,
        "of": 3,
        "name": "cluster",
        "state": "ended",
        "text": "cluster ctrl (kwok, v1.36.3)",
        "seconds": 14.8,
    }


def test_each_object_is_what_its_schema_says() -> None:
    there, clock = app(), FakeClock()
    go(Progress(there, "json", STEPS, clock), clock)
    told = json.loads((REPOSITORY / "docs/schemas/progress.v1.json").read_text())
    validator = Draft202012Validator({**told, "additionalProperties": False})
    for line in said(there).splitlines():
        assert [error.message for error in validator.iter_errors(json.loads(line))] == []
    names = {step for asked in (EVERYTHING.steps, DOWN, ("load", "logs")) for step in asked}
    assert names == set(told["properties"]["name"]["enum"])


@pytest.mark.parametrize(("form", "left"), [("none", "context kwok-ctrl\n"), ("quiet", "")])
def test_less_can_be_told(form: str, left: str) -> None:
    there, clock = app(), FakeClock()
    go(Progress(there, form, STEPS, clock), clock)
    assert said(there) == left


@pytest.mark.parametrize("form", ["plain", "none", "quiet"])
def test_a_warning_comes_in_every_form(form: str) -> None:
    there = app()
    Progress(there, form, STEPS, FakeClock()).warn("the file is readable by other users")
    assert said(there) == "the file is readable by other users\n"


def test_what_others_say_cannot_drive_a_terminal() -> None:
    there = app()
    Progress(there, "plain", STEPS, FakeClock()).say("a\x1b[2Jb\nc")
    assert said(there) == "a\\x1b[2Jb\\x0ac\n"


@contextmanager
def terminal(columns: int, environ: Mapping[str, str] | None = None) -> Iterator[tuple[App, io.BytesIO]]:
    """An application at a terminal, and all that the terminal was given."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = io.BytesIO()

    def drain() -> None:
        with suppress(OSError):  # Linux says so when the last writer is gone
            while more := os.read(ours, 65536):
                shown.write(more)

    reader = threading.Thread(target=drain)
    reader.start()
    with open(its, "w", encoding="utf-8") as err:  # noqa: PTH123 - a descriptor, no path
        yield App(out=io.StringIO(), err=err, user=User(environ or {"TERM": "xterm"})), shown
    reader.join()
    os.close(ours)


def drawn(shown: io.BytesIO) -> list[str]:
    """Every line as it stood there at some time."""
    return [line.replace("\x1b[K", "") for line in re.split(r"[\r\n]+", shown.getvalue().decode())]


@pytest.mark.parametrize("columns", [80, 40, 12])
def test_no_line_is_longer_than_the_terminal(columns: int) -> None:
    clock = FakeClock()
    with terminal(columns) as (there, shown):
        progress = Progress(there, "auto", STEPS, clock)
        with progress.step("cluster", "cluster ctrl (kind)") as step:
            step.note("Ensuring node image (kindest/node:v1.36.3) 🖼  " * 4)
            drew(shown)
            step.text = "cluster ctrl (kind, v1.36.3) " * 9
    lines = drawn(shown)
    assert max(map(len, lines)) < columns
    assert any("Ensuring" in line for line in lines) is (columns > 40)
    assert "🖼" not in shown.getvalue().decode()


def drew(shown: io.BytesIO) -> None:
    """Return once the note was drawn, or a few frames were."""
    waiting = threading.Event()
    for _ in range(100):
        if shown.getvalue().count(b"\r") > 3:
            return
        waiting.wait(0.05)
    raise AssertionError("Nothing was drawn within 5 s.")


def test_the_spinner_leaves_one_line_and_what_is_said_meanwhile_stands_above_it() -> None:
    clock = FakeClock()
    with terminal(80) as (there, shown):
        progress = Progress(there, "auto", STEPS, clock)
        with progress.step("cluster", "cluster ctrl (kind)"):
            drew(shown)
            with logging_to(progress.say, form="text", verbosity=0):
                logging.getLogger("kubectl_ctrl").warning("Look out.")
    screen = settled(shown.getvalue().decode())
    assert screen[0].endswith("warning: Look out.")
    assert screen[1:] == [" ✓ cluster ctrl (kind)" + " " * 50 + "0.0s", ""]


def settled(text: str) -> list[str]:
    """What is to be seen in the end."""
    lines = [""]
    for part in re.findall(r"\r\n|\r|\n|\x1b\[K|[^\r\n\x1b]+", text):
        if part in ("\r\n", "\n"):
            lines.append("")
        elif part == "\r":
            lines[-1] = ""  # whatever was there is written over or wiped off
        elif part != "\x1b[K":
            lines[-1] = part
    return lines


def test_a_terminal_that_understands_nothing_gets_lines() -> None:
    with terminal(80, {"TERM": "dumb"}) as (there, shown):
        progress = Progress(there, "auto", STEPS, FakeClock())
        with progress.step("provider", "provider"):
            pass
    assert shown.getvalue().decode() == " ok provider" + " " * 60 + "0.0s\r\n"
