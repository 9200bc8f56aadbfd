"""`replay` on real recordings and case files: exit codes, what is told, and what --bless leaves behind."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.loader import sources
from kubectl_ctrl.model.record import RecordedController
from kubectl_ctrl.model.resources import SECRETS
from kubectl_ctrl.replay.casefile import case_of, dumps, loads
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.value import replace
from tests.cli.own import Write
from tests.history import made
from tests.runtime.toy import TOYS
from tests.runtime.world import World, toy

Captured = pytest.CaptureFixture[str]

CODE = """\
from kubectl_ctrl import CONFIGMAPS, SECRETS, Context, Request, Resource, Result, controller

TOYS = Resource("toys.example.com", "v1", "toys", "Toy")


async def reconcile(ctx: Context, request: Request) -> Result | None:
    toy = await ctx.read.get(TOYS, request.name)
    if toy is None:
        return None
    print("never part of the answer")
    coat = {"metadata": {"name": "coat"}, "data": {"size": str(toy["spec"]["size"])}}
    await ctx.write.ensure(coat, owner=toy, resource=CONFIGMAPS)
    if toy["spec"].get("secret"):
        await ctx.read.live(SECRETS, "key")
    return Result(after=5)


CONTROLLER = controller("toy", reconcile).for_(TOYS).owns(CONFIGMAPS)
"""
WIDER = CODE.replace('["size"])', '["size"] + 1)')
CURIOUS = CODE.replace("    return Result", '    await ctx.read.live(CONFIGMAPS, "hat")\n    return Result')


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A recording of a user's controller: its first attempt, and one that read a Secret."""

    code: Path
    recording: Path
    first: str
    secret: str

    def case(self, attempt: str = "") -> Path:
        """The file that an export makes."""
        with Recording.open(self.recording) as recording:
            told = recording.replayable(attempt or self.first)
            path = self.recording.parent / "case.json"
            path.write_text(dumps(case_of(told, recording.run(told.run))), encoding="utf-8")
        return path

    def replay(self, word: str | Path, *flags: str) -> int:
        """In a process that has not loaded the code yet."""
        for name in [name for name, module in sys.modules.items() if getattr(module, "__file__", "") == str(self.code)]:
            del sys.modules[name]
        code = [] if any(flag.startswith("--code") for flag in flags) else ["--code=mine.py"]
        return cli.main(["replay", str(word), "--utc", f"--from={self.recording}", *code, *flags])


@pytest.fixture
def scene(write: Write, tmp_path: Path) -> Scene:
    code = write("mine.py", CODE)
    (sourced,) = sources.resolve(["./mine.py"])

    async def play() -> World:
        world = World({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "data": {"a": "Yg=="}})
        world.server.create(toy("bear", size=3))
        async with world.running(sourced.spec, run_id="r7f3"):
            await world.rest(1)
            world.server.change(TOYS, "bear", {"spec": {"size": 4, "secret": True}})
            await world.rest(1)
        return world

    world = run_virtual(play())
    played = RecordedController(
        name="toy", word="./mine.py", code=str(code), primaries=(TOYS,), manager=sourced.spec.field_manager
    )
    recording = made.recording(tmp_path, *world.observed, run=replace(made.RUN, controllers=(played,)))
    secrets = [one.id for one in world.attempts if any(read.resource == SECRETS for read in one.reads)]
    return Scene(code=code, recording=recording, first=world.attempts[0].id, secret=secrets[0])


@pytest.fixture(params=["recording", "file"])
def word(request: pytest.FixtureRequest, scene: Scene) -> Callable[[], str]:
    """The same attempt, named in both ways."""
    return lambda: scene.first if request.param == "recording" else str(scene.case())


def test_the_same_code_ends_with_0(scene: Scene, word: Callable[[], str], capsys: Captured) -> None:
    assert scene.replay(word()) == 0
    out, err = capsys.readouterr()
    head, why, _, write, *_, verdict = out.splitlines()
    assert head.startswith(f"toy default/bear · {scene.first} at ")
    assert head.endswith("today's code: mine.py")
    assert why == "why: initial list"
    assert write == "   1  ensure ConfigMap/coat  same"
    assert verdict == "SAME: 1 write, 0 events, 1 recorded read"
    assert err == "never part of the answer\n"


def test_other_code_ends_with_9_and_names_the_line_and_the_field(
    scene: Scene, word: Callable[[], str], capsys: Captured
) -> None:
    named = word()
    scene.code.write_text(WIDER)
    assert scene.replay(named) == 9
    out, err = capsys.readouterr()
    assert "   1  ensure ConfigMap/coat  DIFFERS  here/mine.py:12\n        data.size   3 → 4\n" in out
    assert out.endswith("DIFFERS: 1 of 1 write (recorded → today)\n")
    assert "next: kubectl ctrl " in err


def test_a_read_that_was_not_recorded_ends_with_9_and_is_named(scene: Scene, capsys: Captured) -> None:
    scene.code.write_text(CURIOUS)
    assert scene.replay(scene.first) == 9
    assert "live ConfigMap default/hat  NOT RECORDED  here/mine.py:15" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_for_machines(scene: Scene, capsys: Captured, form: str) -> None:
    scene.code.write_text(WIDER)
    assert scene.replay(scene.first, "-o", form) == 9
    told = yaml.safe_load(capsys.readouterr().out)
    assert (told["same"], told["attempt"]) == (False, scene.first)
    assert told["writes"][0]["changes"] == [{"path": "data.size", "recorded": "3", "today": "4"}]


def test_the_code_can_be_somewhere_else(scene: Scene, write: Write, capsys: Captured) -> None:
    write("other/mine.py", WIDER)
    assert scene.replay(scene.first, "--code=./other/mine.py") == 9


def test_ones_own_recording_names_its_code(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state" / "kubectl-ctrl").mkdir(parents=True)
    scene.recording.rename(tmp_path / "state" / "kubectl-ctrl" / "history.db")
    assert cli.main(["replay", scene.first]) == 0
    scene.code.unlink()
    assert cli.main(["replay", scene.first]) == 2
    assert "The code of controller 'toy' no longer exists" in capsys.readouterr().err


def test_a_secret_that_was_read_ends_with_4(scene: Scene, capsys: Captured) -> None:
    assert scene.replay(scene.secret) == 4
    assert scene.replay(scene.case(scene.secret)) == 4
    err = capsys.readouterr().err
    assert err.count("cannot be replayed: it reads a Secret (default/key)") == 2
    assert f"kubectl ctrl trace toy/bear --id {scene.secret}" in err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "replay takes one attempt or one file."),
        (("12",), 2, "The run of attempt 12 is missing."),
        (("r7f3-9999",), 4, "contains no attempt 'r7f3-9999'"),
        (("nothing.json",), 2, "'nothing.json' is neither an attempt nor a file."),
        (("mine.py",), 2, "mine.py is not JSON"),
        ((".",), 2, "Cannot read .: Is a directory."),
        (("/dev/zero",), 2, "/dev/zero is a device or a pipe, not a file."),
        (("r7f3-1", "--bless"), 2, "--bless changes the expectation of a file"),
        (("r7f3-1", "--code=foo"), 2, "foo is controller 'foo', and r7f3-1 is of 'toy'."),
        (("r7f3-1", "--code=./nothing.py"), 2, "File './nothing.py' does not exist."),
        (("r7f3-1", "-o", "wide"), 2, "Invalid value for --output: 'wide'."),
    ],
)
def test_what_cannot_be_done_is_said(
    scene: Scene, capsys: Captured, words: tuple[str, ...], code: int, said: str
) -> None:
    assert cli.main(["replay", *words, f"--from={scene.recording}"]) == code
    assert said in capsys.readouterr().err


def test_no_recording_ends_with_4(scene: Scene, tmp_path: Path) -> None:
    assert cli.main(["replay", "r7f3-1", f"--from={tmp_path / 'nothing.db'}"]) == 4


def test_a_reconciler_that_does_not_end_is_cut(scene: Scene, capsys: Captured) -> None:
    slow = CODE.replace("    return Result", "    await asyncio.Event().wait()\n    return Result")
    scene.code.write_text("import asyncio\n" + slow)
    assert scene.replay(scene.first, "--timeout=100ms") == 9
    assert "The attempt was canceled after its timeout of 0.1 s." in capsys.readouterr().out


@pytest.mark.parametrize("sent", ["file", "recording"])
def test_what_somebody_sent_runs_no_code_but_what_is_named(scene: Scene, sent: str, capsys: Captured) -> None:
    """As after unpacking a bug report: the file and the code that it names lie in the current folder."""
    words = [scene.first, f"--from={scene.recording}"] if sent == "recording" else [str(scene.case())]
    scene.code.write_text("raise AssertionError('it was loaded')\n" + CODE)
    assert cli.main(["replay", *words]) == 2
    err = capsys.readouterr().err
    assert "A file must not select the code that runs, and controller 'toy' is not bundled." in err
    line = next(line for line in err.splitlines() if line.startswith("next: "))
    assert shlex.split(line.partition("kubectl ctrl ")[2]) == ["replay", words[0], *words[1:], f"--code={scene.code}"]
    scene.code.write_text(CODE)
    assert cli.main(shlex.split(line.partition("kubectl ctrl ")[2])) == 0


def test_code_that_is_not_here_is_asked_for(scene: Scene, capsys: Captured) -> None:
    scene.code.unlink()
    assert cli.main(["replay", str(scene.case())]) == 2
    assert "next: select the code: kubectl ctrl replay " in capsys.readouterr().err


def test_the_word_of_the_run_is_looked_for_where_the_path_is_gone(scene: Scene, capsys: Captured) -> None:
    file = scene.case()
    file.write_text(file.read_text().replace(str(scene.code), "/home/somebody/mine.py"))
    assert cli.main(["replay", str(file)]) == 2
    assert f"--code={scene.code}" in capsys.readouterr().err


# --- blessing


def test_a_blessed_file_expects_what_todays_code_does(scene: Scene, capsys: Captured) -> None:
    file = scene.case()
    file.chmod(0o640)
    before = loads(file.read_text())
    scene.code.write_text(WIDER)
    assert scene.replay(file) == 9
    assert scene.replay(file, "--bless") == 0
    assert f"{file} now expects what" in capsys.readouterr().err
    after = loads(file.read_text())
    assert json.loads(after.attempt.wishes[0].body)["data"] == {"size": "4"}
    assert replace(after, attempt=replace(after.attempt, wishes=before.attempt.wishes)) == before
    assert file.stat().st_mode & 0o777 == 0o640
    assert scene.replay(file) == 0
    assert [path.name for path in file.parent.glob("*.json*")] == [file.name]


def test_what_was_not_recorded_is_not_blessed(scene: Scene, capsys: Captured) -> None:
    file = scene.case()
    text = file.read_text()
    scene.code.write_text(CURIOUS)
    assert scene.replay(file, "--bless") == 9
    assert file.read_text() == text
    assert "run today's code on a cluster with that object" in capsys.readouterr().err


def test_a_file_that_cannot_be_replaced_stays_as_it_was(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    file = scene.case()
    text = file.read_text()
    scene.code.write_text(WIDER)

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert scene.replay(file, "--bless") == 2
    assert file.read_text() == text
    assert "No space left on device" in capsys.readouterr().err
    assert sorted(path.name for path in file.parent.iterdir() if path.suffix == ".json" or "tmp" in path.name) == [
        file.name
    ]


def test_the_settings_that_the_controller_had_are_given_again(scene: Scene, write: Write) -> None:
    text = CODE.replace(
        "CONTROLLER = ", "def configured(annotation_prefix):\n    assert annotation_prefix == 'a/'\n    return "
    )
    scene.code.write_text(text)
    file = scene.case()
    assert scene.replay(file) == 2  # there is no controller without the setting
    document = json.loads(file.read_text())
    document["controller"]["settings"] = {"annotation_prefix": "a/"}
    file.write_text(json.dumps(document))
    assert scene.replay(file) == 0
