"""Only a process that we would see here may be said to be dead: its successor starts at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_ctrl.runs.holder import identity, is_dead

linux = pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="pids of other machines look like ours here")


@pytest.fixture
def gone() -> int:
    """The pid of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def signed(pid: int) -> str:
    machine, _, rest = identity("r7f3").rpartition("_")[0].rpartition("_")
    assert rest == str(os.getpid())
    return f"{machine}_{pid}_r7f3"


@linux
def test_a_process_of_here_that_has_ended_is_dead(gone: int) -> None:
    assert is_dead(signed(gone))
    assert not is_dead(identity("r7f3"))


def test_what_is_signed_elsewhere_or_otherwise_counts_as_alive(gone: int) -> None:
    for holder in ("", "web-1", f"elsewhere.1.2_{gone}_r7f3", signed(gone).replace(f"_{gone}_", "_x_")):
        assert not is_dead(holder)


@linux
def test_where_the_boot_or_the_namespace_is_not_known_all_count_as_alive(gone: int, tmp_path: Path) -> None:
    machine, _, _ = signed(gone).rpartition("_")[0].rpartition("_")
    host = machine.rsplit(".", 2)[0]
    assert not is_dead(f"{host}.0_{gone}_r7f3", tmp_path)


@linux
def test_a_pid_of_another_container_on_this_machine_tells_nothing(gone: int, tmp_path: Path) -> None:
    boot = tmp_path / "sys/kernel/random"
    boot.mkdir(parents=True)
    (boot / "boot_id").write_text(Path("/proc/sys/kernel/random/boot_id").read_text())
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[1]")
    assert not is_dead(signed(gone), tmp_path)


@linux
def test_a_process_that_was_killed_and_never_asked_about_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not is_dead(signed(process.pid))
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(signed(process.pid))
