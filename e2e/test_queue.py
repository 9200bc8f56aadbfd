"""The queues of a controller, read from another terminal while it works, hangs, is stopped and is killed."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.ctrl import PROGRAM, Ctrl
from e2e.kube import Kubectl, wait_until

_CODE = '''\
"""slow: does with each ConfigMap what its name says."""

import asyncio

from kubectl_ctrl import CONFIGMAPS, Context, Request, Result, controller


async def reconcile(ctx: Context, request: Request) -> Result | None:
    if request.name.startswith("long"):
        await asyncio.Event().wait()
    if request.name.startswith("bad"):
        raise ValueError("it is bad")
    return Result(600) if request.name.startswith("timed") else None


CONTROLLER = controller("slow", reconcile).for_(CONFIGMAPS)
'''


@pytest.fixture
def slow(tmp_path: Path) -> str:
    path = tmp_path / "slow.py"
    path.write_text(_CODE)
    return str(path)


def make(kubectl: Kubectl, *names: str) -> None:
    kubectl.apply(*({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in names))


def seen(ctrl: Ctrl, *flags: str) -> dict[str, Any]:
    """The only controller in the output."""
    ran = ctrl("queue", "slow", "--output=json", *flags).checked()
    controllers: list[dict[str, Any]] = json.loads(ran.out)["controllers"]
    assert len(controllers) == 1, ran.out + ran.err
    return controllers[0]


def stands(ctrl: Ctrl, **wanted: str) -> Callable[[], dict[str, Any]]:
    """The output, once each object is in that state."""

    def look() -> dict[str, Any]:
        found = seen(ctrl)
        states = {entry["name"]: entry["state"] for entry in found.get("entries", ())}
        assert {name: states.get(name.replace("_", "-"), "") for name in wanted} == wanted, found
        return found

    return look


@pytest.mark.real
def test_waiting_running_and_delayed_requests_also_after_a_kill(
    ctrl: Ctrl, kubectl: Kubectl, namespace: str, slow: str
) -> None:
    wait_until(lambda: kubectl.find("configmap", "kube-root-ca.crt"))  # Kubernetes creates one in each namespace
    make(kubectl, "bad", "timed", "long-1")
    running = ctrl.started("run", slow, "--workers=2")

    def settled() -> dict[str, Any]:
        found = stands(ctrl, bad="backoff", timed="timer", long_1="running")()
        assert (found["life"], found["leading"], found["synced"]) == ("running", True, True), found
        assert found["workers"] == {"total": 2, "busy": 1}, found
        assert found["depth"] == {"ready": 0, "running": 1, "backoff": 1, "timers": 1}, found
        return found

    found = wait_until(settled)  # other ConfigMaps are reconciled too
    assert (found["pid"], found["recorded"], found["message"]) == (running.process.pid, True, "")
    entries = {entry["name"]: entry for entry in found["entries"]}
    assert re.fullmatch(r"r[0-9a-z]+-\d+", entries["long-1"]["attempt"])
    assert entries["bad"]["failures"] >= 1
    assert entries["bad"]["due"] > entries["bad"]["since"]

    # Both workers hang: new requests can only wait.
    make(kubectl, "long-2")
    wait_until(stands(ctrl, long_2="running"))
    make(kubectl, "late")
    found = wait_until(stands(ctrl, late="ready", bad="ready"))  # due too, so that the states are final
    text = ctrl("queue").checked().out
    assert f"2 of 2 workers busy; {found['depth']['ready']} ready" in text
    assert re.search(rf"^{namespace}/late +ready ", text, re.MULTILINE)

    running.signal(signal.SIGKILL)
    running.wait()
    found = seen(ctrl)
    assert found["life"] == "gone"
    assert {entry["name"] for entry in found["entries"]} >= {"long-1", "long-2", "late", "timed"}
    text = ctrl("queue").checked().out
    assert f"process {found['pid']} is gone" in text
    assert re.search(rf"^{namespace}/long-1 +interrupted ", text, re.MULTILINE)


def test_a_stopped_process_differs_from_a_missing_one(ctrl: Ctrl, kubectl: Kubectl, slow: str) -> None:
    running = ctrl.started("run", slow)
    wait_until(lambda: seen(ctrl)["life"] == "running")
    pid = seen(ctrl)["pid"]
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: seen(ctrl)["life"] == "stopped")
    assert f"process {pid} is stopped; kill -CONT {pid} resumes it" in ctrl("queue").checked().out
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: seen(ctrl)["life"] == "running")
    assert running.stop() == 0
    ran = ctrl("queue").checked()
    assert (ran.out, ran.err.startswith("No controller runs from this machine on cluster ")) == ("", True)
    assert seen(ctrl)["life"] == "ended"


def test_one_that_does_not_record_is_known_all_the_same(ctrl: Ctrl, slow: str) -> None:
    running = ctrl.started("run", slow, "--record=off")
    running.line("leader election")

    def told() -> bool:
        ran = ctrl("queue").checked()
        assert "it runs with --record off, so its queue is unknown" in ran.out, ran.out + ran.err
        return True

    wait_until(told)
    found = seen(ctrl)
    assert (found["recorded"], "entries" in found) == (False, False)
    assert running.stop() == 0
    ran = ctrl("queue").checked()
    assert (ran.out, "No controller runs from this machine on context " in ran.err) == ("", True)


def test_a_pipe_gets_a_snapshot_for_each_change(ctrl: Ctrl, kubectl: Kubectl, namespace: str, slow: str) -> None:
    wait_until(lambda: kubectl.find("configmap", "kube-root-ca.crt"))  # Kubernetes creates one in each namespace
    running = ctrl.started("run", slow)
    wait_until(lambda: seen(ctrl)["synced"])
    watching = ctrl.started("queue", "-w")
    watching.line("the queue is empty")
    make(kubectl, "timed")
    watching.line(rf"^{namespace}/timed +timer +\d{{4}}-\d\d-\d\dT")

    def shown_after(heartbeats: int) -> int:
        for _ in range(heartbeats):
            before = seen(ctrl)["asOf"]
            wait_until(lambda: seen(ctrl)["asOf"] > before)  # noqa: B023 - it is asked at once
        return sum(line.startswith("-- ") for line in watching.out)

    assert shown_after(2) == shown_after(2), "heartbeats are no change"
    watching.signal(signal.SIGINT)
    assert watching.wait() == 0
    assert not any("\x1b" in line for line in watching.out)
    assert running.stop() == 0


def test_a_terminal_is_drawn_over(ctrl: Ctrl, kubectl: Kubectl, env: Mapping[str, str], slow: str) -> None:
    running = ctrl.started("run", slow)
    make(kubectl, "timed")
    wait_until(stands(ctrl, timed="timer"))
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    words = [str(PROGRAM), "queue", "--watch"]
    with subprocess.Popen(words, env={**env, "TERM": "xterm"}, stdin=its, stdout=its, stderr=its) as watching:
        os.close(its)
        shown = b""
        while shown.count(b"\x1b[J") < 3:
            shown += os.read(ours, 65536)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(30) == 0
    frames = shown.decode(errors="replace").split("\x1b[J")  # the last one may be incomplete
    assert frames[0].startswith("\x1b[?25l"), "the cursor does not jump about"
    lines = frames[0].count("\n")
    assert frames[1].startswith(f"\x1b[{lines}F"), "a frame begins where the one before began"
    assert re.search(r"^timed +timer +", frames[1], re.MULTILINE), "its first line names the namespace"
    os.close(ours)
    assert running.stop() == 0
