"""The processes of a folder, with real ones: found by what started them alone, and ended with what they started."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_ctrl import processes
from kubectl_ctrl.clock import SystemClock

pytestmark = pytest.mark.programs("sh", "sleep")

SLEEP = Path("/bin/sleep")


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    every: list[subprocess.Popen[bytes]] = []
    yield every
    for process in every:
        process.kill()
        process.wait()


def linked(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / name
    link.symlink_to(SLEEP)
    return link


def found(folder: Path) -> dict[int, str]:
    return {process.pid: process.program for process in asyncio.run(processes.running(folder))}


def test_they_are_found_by_the_path_that_started_them(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    mine, near = tmp_path / "with blanks" / "one", tmp_path / "with blanks" / "one2"
    program = linked(mine / "bin", "etcd")
    inside = subprocess.Popen([program, "1000"])
    beside = subprocess.Popen([linked(near, "etcd"), "1000"])
    editor = subprocess.Popen([SLEEP, "1000"], env={"FILE": str(program)}, cwd=mine)
    started += [inside, beside, editor]
    assert found(mine) == {inside.pid: "etcd"}
    asyncio.run(processes.kill_all(mine, SystemClock()))
    assert inside.wait(timeout=60) == -9
    assert (beside.poll(), editor.poll()) == (None, None)
    assert found(mine) == {}


def test_a_folder_counts_by_every_path_to_it(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    linked(tmp_path / "real", "etcd")
    (tmp_path / "way").symlink_to(tmp_path / "real")
    through = subprocess.Popen([tmp_path / "way" / "etcd", "1000"])
    direct = subprocess.Popen([tmp_path / "real" / "etcd", "1000"])
    started += [through, direct]
    assert found(tmp_path / "way") == {through.pid: "etcd", direct.pid: "etcd"}


def test_one_that_was_started_just_now_is_seen(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    """A process that becomes another program has no name for a moment."""
    program = linked(tmp_path, "etcd")
    for _ in range(50):
        started.append(subprocess.Popen([program, "1000"]))
        assert started[-1].pid in found(tmp_path)
    asyncio.run(processes.kill_all(tmp_path, SystemClock()))
    assert {process.wait(timeout=60) for process in started} == {-9}


def test_one_that_leads_a_group_goes_with_its_helpers(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    shell = tmp_path / "bin" / "kind"
    shell.parent.mkdir()
    shell.symlink_to("/bin/sh")
    code = "/bin/sh -c 'echo $$; exec sleep 1000' & wait"  # it says its number once it is another program
    leader = subprocess.Popen([shell, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    started.append(leader)
    assert leader.stdout
    helper = int(leader.stdout.readline())
    asyncio.run(processes.kill_all(tmp_path, SystemClock()))
    leader.stdout.read()  # ends when nobody has it open any more
    leader.stdout.close()
    assert leader.wait(timeout=60) == -9
    assert processes.has_exited(helper)


def test_what_only_mentions_a_module_and_its_file_is_not_it(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    folder = tmp_path / "with blanks"
    (folder / "place").mkdir(parents=True)
    (folder / "place" / "sleepy.py").write_text("import sys; print(flush=True); sys.stdin.read()")
    log, python = folder / "a.log", [sys.executable, "-I"]
    hidden = "import sys; print(flush=True); sys.stdin.read()"
    words = ["-m", "sleepy", str(log)]

    def begun(*command: str) -> int:
        process = subprocess.Popen(
            command, cwd=folder / "place", stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"PATH": os.defpath}
        )
        started.append(process)
        assert process.stdout
        process.stdout.readline()
        return process.pid

    real = begun(sys.executable, *words, "run")
    begun(*python, "-c", hidden, *words, "run")
    begun("/bin/sh", "-c", "echo; read line", *words)
    begun(sys.executable, "-m", "sleepy", f"{log}.1")
    begun(sys.executable, "-m", "sleepy", f"--log={log}")
    assert processes.of_module("sleepy", log) == (real,)
    assert processes.of_module("leepy", log) == processes.of_module("sleepy", tmp_path / "with") == ()
    assert set(processes.of_module("sleepy", folder, below=True)) == {real, started[3].pid}
    assert processes.of_module("sleepy", tmp_path / "with", below=True) == ()
    for process in started:
        process.communicate()


def test_what_is_let_end_ends_by_itself(tmp_path: Path, started: list[subprocess.Popen[bytes]]) -> None:
    process = subprocess.Popen(["/bin/sh", "-c", "read line", tmp_path], stdin=subprocess.PIPE)
    started.append(process)
    assert process.stdin
    line = process.stdin

    class Meanwhile(SystemClock):
        async def sleep(self, seconds: float) -> None:
            line.close()
            await super().sleep(seconds)

    asyncio.run(processes.wait_for_exit(str(tmp_path), Meanwhile()))
    assert process.wait() == 1  # of the shell that read nothing


def test_what_takes_too_long_to_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(processes, "_TIMEOUT", 0.0)
    process = subprocess.Popen(["/bin/sh", "-c", "read line", tmp_path], stdin=subprocess.PIPE)
    started.append(process)
    asyncio.run(processes.wait_for_exit(str(tmp_path), SystemClock()))
    assert process.wait() == -9
    assert process.stdin
    process.stdin.close()


@pytest.mark.programs("ps")
def test_without_proc_they_are_found_through_ps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    program = linked(tmp_path / "with blanks", "kube-apiserver")
    process = subprocess.Popen([program, "1000"])
    started.append(process)
    monkeypatch.setattr(processes, "PROC", tmp_path / "none")
    assert found(tmp_path / "with blanks") == {process.pid: "kube-apiserver"}


def test_what_has_ended_is_gone_though_nobody_asked_how(started: list[subprocess.Popen[bytes]]) -> None:
    process = subprocess.Popen(["sleep", "60"])
    started.append(process)
    assert not processes.has_exited(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert processes.has_exited(process.pid)
    process.wait()
    assert processes.has_exited(process.pid)
