"""Controllers in the background of a managed cluster: closed terminals, kills and a restart of the machine."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.ctrl import PROGRAM, Ctrl
from e2e.kube import CHECKOUT, run, wait_until
from e2e.terminal import at_terminal
from e2e.test_memcached import converged
from e2e.user import User

_NO_GOOD = """\
import sys

if not {when}:
    raise RuntimeError("no good today")

from kubectl_ctrl import CONFIGMAPS, Context, Request, controller


async def reconcile(ctx: Context, request: Request) -> None:
    print("\\033[31mhello", request.name)


CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)
"""

_SLOW = """\
import asyncio
from pathlib import Path

from kubectl_ctrl import CONFIGMAPS, Context, Request, controller


async def reconcile(ctx: Context, request: Request) -> None:
    print("it takes its time", flush=True)
    while not Path(__file__).with_name("enough").exists():
        await asyncio.sleep(0.1)
    print("and is done", flush=True)


CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)
"""


def running(ctrl: Ctrl) -> Mapping[str, Mapping[str, Any]]:
    """The output of `status`, by controller."""
    told = json.loads(ctrl("status", "--name=ctrl", "--output=json").checked().out)
    return {one["name"]: one for one in told["controllers"]}


def words_of(pid: int) -> list[str]:
    return Path("/proc", str(pid), "cmdline").read_text().split("\0")[:-1]


@pytest.mark.real
def test_it_runs_until_it_is_stopped(user: User, programs: Path) -> None:
    ctrl = user.ctrl
    # The terminal that started it is closed at once.
    code, shown = at_terminal(PROGRAM, "up", "foo", "--example", "--detach", env={**user.env, "TERM": "xterm"})
    assert code == 0, shown
    foo = running(ctrl)["foo"]
    assert f"foo runs in the background (process {foo['pid']})" in shown
    assert (foo["state"], foo["background"], foo["cluster"], foo["namespace"]) == ("running", True, "ctrl", "default")
    assert Path(foo["log"]).stat().st_mode & 0o777 == 0o600

    # A second one beside it, and neither is started twice.
    user.up("memcached", "--example", "--detach").checked()
    again = user.up("memcached", "foo", "--detach").checked()
    assert again.err.count(" already runs here: process ") == 2
    both = running(ctrl)
    assert {name: one["pid"] for name, one in both.items()}.keys() == {"foo", "memcached"}
    assert both["foo"] == foo
    table = ctrl("status", "--name=ctrl").checked().out.splitlines()
    assert [line.split()[0] for line in table] == ["CONTROLLER", "foo", "memcached"]

    # Its log, and a followed log. The edit is the first cause of its reconcile, because nothing else changes any more.
    kubectl = user.kubectl(programs)
    wait_until(converged(kubectl, 3), what="memcached-sample is rolled out")
    before = ctrl("logs", "memcached", "--name=ctrl").checked().out.splitlines()
    heard = ctrl.started("logs", "memcached", "--follow", "--tail=1", "--name=ctrl")
    heard.line(r"memcached-sample")
    whole = ctrl("logs", "memcached", "--name=ctrl").checked().out.splitlines()
    assert whole.index(heard.out[0]) >= len(before) - 1 > 0, "It began earlier than with the last line."
    kubectl("patch", "memcached", "memcached-sample", "--type=merge", '--patch={"spec":{"size":5}}')
    heard.line(r"spec\.size 3→5 by kubectl-patch")
    assert (
        ctrl("logs", "foo", "--name=ctrl")
        .checked()
        .out.startswith(f"run {foo['run']}: foo on context {user.context('ctrl')} ")
    )
    assert re.search(r"^\[foo\] .*\n(.*\n)*\[memcached\] ", ctrl("logs", "--name=ctrl").checked().out, re.MULTILINE)

    # stop waits for its exit, which ends the followed log too.
    stopped = ctrl("stop", "memcached", "--name=ctrl").checked()
    assert stopped.out == "memcached stopped\n"
    assert not [line for line in user.processes() if line.startswith(f"{both['memcached']['pid']} ")]
    assert heard.wait() == 0
    assert heard.err[-1] == "memcached has ended."
    assert running(ctrl).keys() == {"foo"}
    assert ctrl("stop", "memcached", "--name=ctrl").checked().err == "memcached does not run here on cluster ctrl.\n"
    assert "spec.size 3→5" in ctrl("logs", "memcached", "--name=ctrl").checked().out
    user.assert_nothing_is_left(user.down())


def test_killed_and_started_again_in_every_way(user: User) -> None:
    ctrl = user.ctrl
    user.up("foo", "--detach").checked()
    first = running(ctrl)["foo"]
    os.kill(first["pid"], signal.SIGKILL)
    wait_until(lambda: running(ctrl)["foo"]["state"] == "dead")
    told = ctrl("status", "--name=ctrl").checked()
    assert told.err == "foo is dead; its log: kubectl ctrl logs foo --name ctrl\n"

    # A restart of the machine: no process runs any more.
    user.up("foo", "--detach").checked()
    user.end_all()
    assert running(ctrl)["foo"]["state"] == "dead"
    user.up("foo", "--detach").checked()
    second = running(ctrl)["foo"]
    assert (second["state"], second["pid"] == first["pid"]) == ("running", False)
    assert ctrl("logs", "foo", "--name=ctrl").checked().out.count("\nrecorded in ") == 3

    # It is started again in the same way: here by bin/kubectl-ctrl; as a module; as an installed script.
    python, apart, *rest = words_of(second["pid"])
    assert (apart, rest[:2]) == ("-I", ["-m", "kubectl_ctrl.cli.background_main"])
    script = str(Path(python).parent / "kubectl-ctrl")
    for way in ([python, "-m", "kubectl_ctrl"], [python, script]):
        ctrl("stop", "foo", "--name=ctrl").checked()
        assert Path.cwd() == CHECKOUT, "The package is found as a module from there."
        run(*way, "up", "foo", "--detach", env=user.env, timeout=240).checked()
        third = running(ctrl)["foo"]
        assert (third["state"], words_of(third["pid"])[:2]) == ("running", [python, "-P"])

    # A killed stop: down finds everything.
    os.kill(third["pid"], signal.SIGSTOP)
    wait_until(lambda: running(ctrl)["foo"]["state"] == "stopped")
    user.assert_nothing_is_left(user.down())


def test_one_that_still_finishes_is_waited_for_and_never_cut_short(user: User, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(_SLOW)
    user.up(str(mine), "--detach").checked()
    first = running(user.ctrl)["mine"]
    wait_until(lambda: "it takes its time" in user.ctrl("logs", "mine", "--name=ctrl").checked().out)
    for _ in range(2):
        assert user.ctrl("stop", "mine", "--name=ctrl", "--timeout=10ms").code == 124
    assert running(user.ctrl)["mine"]["state"] == "draining"
    again = user.ctrl.started("up", str(mine), "--detach", "--progress=json")
    again.line(rf"waiting for mine \(process {first['pid']}\)")
    mine.with_name("enough").touch()
    assert again.wait() == 0
    second = running(user.ctrl)["mine"]
    assert (second["state"], second["pid"] == first["pid"]) == ("running", False)
    assert "and is done" in user.ctrl("logs", "mine", "--name=ctrl").checked().out
    user.assert_nothing_is_left(user.down())


def test_the_reason_of_a_failed_start_is_printed(user: User, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(_NO_GOOD.format(when="False"))
    told = user.up(str(mine), "--detach")
    assert told.code == 1
    assert "no good today" in told.err
    assert not list(user.state.glob("clusters/*")), "It was seen before anything was made."

    mine.write_text(_NO_GOOD.format(when="'up' in sys.argv"))
    told = user.up(str(mine), "--detach")
    assert told.code == 1
    error = re.search(r"^error\[CTRL-PROGRAM\]: (.*)\ntried: (.*)\nnext: (.*)$", told.err, re.MULTILINE)
    assert error, told.err
    assert error[1].startswith("mine exited with code 1 right after its start in the background: ")
    assert "RuntimeError: no good today" in error[1]
    assert error[2].startswith(f"kubectl ctrl run {mine} --context={user.context('ctrl')} ")
    assert error[3].endswith("its log: kubectl ctrl logs mine --name ctrl")
    assert running(user.ctrl)["mine"]["state"] == "failed"
    assert "no good today" in user.ctrl("logs", str(mine), "--name=ctrl").checked().out

    # Once fixed, it starts from another folder too; its output does not control a terminal.
    mine.write_text(_NO_GOOD.format(when="True"))
    user.up(os.path.relpath(mine, CHECKOUT), "--detach").checked()
    wait_until(lambda: "\\x1b[31mhello" in user.ctrl("logs", str(mine), "--name=ctrl").checked().out)
    user.assert_nothing_is_left(user.down())
