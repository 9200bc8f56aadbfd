"""Files change while a controller runs: what is taken up, how fast, and what is not."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.loader import sources
from kubectl_ctrl.loader.reload import Reloader, code_groups
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CONFIGMAPS, PODS
from kubectl_ctrl.runtime.manager import Manager
from kubectl_ctrl.testing.stage import Stage

MINE = """\
from kubectl_ctrl import CONFIGMAPS, controller
from helpers import WORD

async def reconcile(ctx, request):
    ctx.log.info("%s %s", WORD, request.name)

CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)
"""


class Site:
    """A folder with a controller that runs, and what was said."""

    def __init__(self, folder: Path, stage: Stage, manager: Manager, log: pytest.LogCaptureFixture) -> None:
        self.folder = folder
        self.stage = stage
        self.manager = manager
        self._log = log

    def write(self, name: str, text: str) -> None:
        """At the time of the stage's clock: in real time, one writing may follow another within a tick of a file's."""
        (self.folder / name).write_text(text)
        now = self.stage.clock.now()
        os.utime(self.folder / name, (now, now))

    def take(self) -> list[str]:
        """What was said since the last call."""
        told = [record.getMessage() for record in self._log.records if record.levelno >= logging.INFO]
        self._log.clear()
        return told


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    here = tmp_path.resolve()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", sys.path[:])
    before = set(sys.modules)
    (here / "mine.py").write_text(MINE)
    (here / "helpers.py").write_text('WORD = "one"\n')
    yield here
    for name in set(sys.modules) - before:
        if not name.startswith("kubectl_ctrl"):
            del sys.modules[name]


def config_map(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@asynccontextmanager
async def site(folder: Path, log: pytest.LogCaptureFixture, *words: str) -> AsyncIterator[Site]:
    log.set_level(logging.INFO, "kubectl_ctrl")
    sourced = sources.resolve(words or ["./mine.py"])
    watched = code_groups(sourced)
    stage = Stage()
    stage.server.create(config_map("cm"))
    async with stage.running(*(one.spec for one in sourced)) as running:
        task = asyncio.create_task(Reloader(watched, running.manager, clock=stage.clock).run())
        await stage.rest(5)
        its = Site(folder, stage, running.manager, log)
        its.take()
        yield its
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_changed_file_is_taken_up_in_under_a_second(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with site(folder, caplog) as its:
        its.write("helpers.py", 'WORD = "two"\n')
        await its.stage.rest(0.5)
        assert its.take() == ["Reloaded mine, because of a change in helpers.py.", "two cm"]
        [cause] = its.stage.attempts[-1].start.causes
        assert cause.kind is CauseKind.RELOADED
        its.write("mine.py", MINE.replace('"%s %s"', '"%s, %s"').replace("request.name)", '"dear cm")'))
        await its.stage.rest(0.5)
        assert its.take() == ["Reloaded mine, because of a change in mine.py.", "two, dear cm"]
        await its.stage.rest(3600)
        assert its.take() == []


async def test_a_file_is_compared_by_content(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with site(folder, caplog) as its:
        its.write("helpers.py", 'WORD = "one"\n')
        os.utime(folder / "mine.py", (1, 1))
        await its.stage.rest(5)
        assert its.take() == []
        fresh = folder / "helpers.py.tmp"
        fresh.write_text('WORD = "new"\n')  # same size, and an older time
        os.utime(fresh, (1, 1))
        fresh.rename(folder / "helpers.py")
        await its.stage.rest(1)
        assert its.take() == ["Reloaded mine, because of a change in helpers.py.", "new cm"]


async def test_a_file_that_is_still_being_written_is_waited_for(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with site(folder, caplog) as its:
        text = 'WORD = "two"\n'
        for at in range(len(text) + 1):
            its.write("helpers.py", text[:at])
            await its.stage.rest(0.04)
        await its.stage.rest(1)
        assert its.take() == ["Reloaded mine, because of a change in helpers.py.", "two cm"]
        its.write("helpers.py", "")
        await its.stage.rest(0.04)
        its.write("helpers.py", text)
        await its.stage.rest(2)
        assert its.take() == [], "saved twice, and nothing new"


async def test_a_file_that_is_gone_is_told_once_and_welcome_again(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with site(folder, caplog) as its:
        (folder / "helpers.py").unlink()
        await its.stage.rest(0.5)
        assert its.take() == []
        await its.stage.rest(60)
        assert its.take() == ["helpers.py is gone; the loaded code is still used."]
        its.write("helpers.py", 'WORD = "two"\n')
        await its.stage.rest(1)
        assert its.take() == ["Reloaded mine, because of a change in helpers.py.", "two cm"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "mine.py:1:7: It does not compile: "),
        ("1 / 0\n", "mine.py:1:1: It cannot be imported: ZeroDivisionError: division by zero."),
        ("import nowhere_to_be_found\n", "mine.py:1:1: No module named 'nowhere_to_be_found'."),
        ("", "mine.py: There is no controller in this file."),
        (MINE.replace("(ctx, request)", "(ctx)"), "mine.py:7:14: Controller 'mine' got reconcile(ctx)."),
        (MINE.replace('"mine"', '"yours"'), "mine.py:7:1: The controller is now named 'yours', but runs as 'mine'."),
        (MINE.replace(".for_(CONFIGMAPS)", ""), "mine.py:7:1: Controller 'mine' has no primary resource."),
    ],
    ids=["compile", "raises", "module", "empty", "signature", "renamed", "unfinished"],
)
async def test_code_that_cannot_run_changes_nothing_and_is_told_once(
    folder: Path, caplog: pytest.LogCaptureFixture, text: str, message: str
) -> None:
    async with site(folder, caplog) as its:
        its.write("mine.py", text)
        await its.stage.rest(60)
        [told] = its.take()
        assert told.startswith(f"Not reloaded, the old code is still used. {message}")
        its.stage.server.change(CONFIGMAPS, "cm", {"data": {"a": "b"}})
        await its.stage.rest(1)
        assert its.take() == ["one cm"]
        its.write("mine.py", MINE + "# mended\n")
        await its.stage.rest(1)
        assert its.take() == ["Reloaded mine, because of a change in mine.py.", "one cm"]


async def test_a_new_helper_that_is_broken_is_watched_too(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with site(folder, caplog) as its:
        its.write("more.py", "1 / 0\n")
        its.write("helpers.py", "from more import WORD\n")
        await its.stage.rest(1)
        [told] = its.take()
        assert "more.py:1:1" in told
        its.write("more.py", 'WORD = "more"\n')
        await its.stage.rest(1)
        assert its.take() == ["Reloaded mine, because of a change in more.py.", "more cm"]


async def test_what_was_missing_is_noticed_when_it_comes(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with site(folder, caplog) as its:
        its.write("mine.py", MINE.replace("helpers", "later"))
        await its.stage.rest(1)
        assert "No module named 'later'" in " ".join(its.take())
        await its.stage.rest(60)
        assert its.take() == []
        its.write("later.py", 'WORD = "two"\n')
        await its.stage.rest(1)
        assert "Reloaded mine, because of a change in later.py." in its.take()
        its.write("later.py", 'WORD = "three"\n')
        await its.stage.rest(1)
        assert "three cm" in its.take()


async def test_new_code_may_watch_something_else(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with site(folder, caplog) as its:
        its.write("mine.py", MINE.replace("CONFIGMAPS", "PODS"))
        await its.stage.rest(1)
        assert [watch.ask.resource for watch in its.stage.server.watches] == [PODS]


async def test_controllers_of_one_file_are_reloaded_together(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    two = MINE + 'OTHER = controller("other", reconcile).for_(CONFIGMAPS)\n'
    (folder / "mine.py").write_text(two)
    async with site(folder, caplog, "./mine.py:CONTROLLER", "./mine.py:OTHER") as its:
        its.write("helpers.py", 'WORD = "two"\n')
        await its.stage.rest(1)
        assert its.take() == ["Reloaded mine, other, because of a change in helpers.py.", "two cm", "two cm"]
        its.write("mine.py", two.replace("OTHER", "ANOTHER"))
        await its.stage.rest(1)
        assert "There is no 'OTHER' in this file." in its.take()[0]


async def test_attempts_under_way_are_named_and_may_end(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    slow = MINE.replace("    ctx.log", "    await WORD()\n    ctx.log").replace("WORD, req", '"slow", req')
    (folder / "mine.py").write_text(slow)
    (folder / "helpers.py").write_text("async def WORD(): pass\n")
    async with site(folder, caplog) as its:

        async def word() -> None:
            await its.stage.clock.sleep(3)

        sys.modules["mine"].WORD = word  # type: ignore[attr-defined]
        its.stage.server.change(CONFIGMAPS, "cm", {"data": {"a": "b"}})
        await its.stage.rest(1)
        its.write("mine.py", MINE.replace("WORD, req", '"fast", req'))
        await its.stage.rest(1)
        [told] = its.take()
        assert told.startswith("The new code starts after the reconciles in progress: ")
        await its.stage.rest(3)
        assert its.take() == ["slow cm", "Reloaded mine, because of a change in mine.py.", "fast cm"]


async def test_a_hundred_reloads_leave_no_modules_behind(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with site(folder, caplog) as its:
        before, path = set(sys.modules), sys.path[:]
        for turn in range(100):
            its.write("helpers.py", f'WORD = "{turn}"\n')
            await its.stage.rest(1)
            assert its.take()[-1] == f"{turn} cm"
        assert set(sys.modules) == before
        assert sys.path == path


def test_where_nothing_can_change_it_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sourced = sources.resolve(["foo"])
    assert [one.controllers[0].spec.name for one in code_groups(sourced)] == ["foo"], "this is a checkout"
    monkeypatch.setattr(
        "kubectl_ctrl.loader.reload.__file__", str(tmp_path / "site-packages/kubectl_ctrl/loader/reload.py")
    )
    with pytest.raises(UsageError, match="--reload has no files to watch"):
        code_groups(sourced)
