"""F51: kill -9 at any time, also with several writers: each attempt is complete, interrupted or missing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.history.writer import prepare
from tests.history.made import FOOS, begun, recording

_ROOT = Path(__file__).parents[2]


def started(path: Path, name: str, seed: int) -> subprocess.Popen[str]:
    env = {"PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.history.killed", str(path), name, str(seed)],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )


def killed(process: subprocess.Popen[str], *, at: int) -> None:
    """Kill it at this attempt, at any stage of its recording."""
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= at:
            break
    process.kill()
    process.wait()
    process.stdout.close()


def check(path: Path, names: tuple[str, ...]) -> int:
    """Check every attempt, and count them."""
    total = 0
    with Recording.open(path, dead=lambda run: run.id in names) as read:
        for name in names:
            attempts = read.attempts(cluster="c1", resource=FOOS, key=begun(1).request, run=name)
            assert [one.number for one in attempts] == list(range(1, len(attempts) + 1)), "one is missing in the middle"
            for one in attempts[:-1]:
                assert one.verdict is not None
                [kept] = read.replayable(one.id).reads[0].objects
                assert kept["metadata"]["resourceVersion"] == str(one.number)
                assert read.writer_of("c1", f"u-{name}", str(one.number)) == (one.id, f"{one.id}.1")
            for one in attempts[-1:]:
                assert one.interrupted == (one.verdict is None)
                assert len(one.calls) <= 1
            total += len(attempts)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return total


@pytest.mark.parametrize("seed", range(2))
def test_f51_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    path, rng = tmp_path / "history.db", Random(seed)
    prepare(path)
    names = ("ra", "rb", "rc")
    for number, name in enumerate(names):
        killed(started(path, name, 10 * seed + number), at=rng.randint(1, 300))
        check(path, names[: number + 1])
    assert check(path, names) > 0
    recording(tmp_path, begun(1))  # the lock is free for the next writer


def test_f51_one_of_two_writers_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    prepare(path)
    first, second = started(path, "ra", 1), started(path, "rb", 2)
    killed(first, at=200)
    killed(second, at=400)
    assert check(path, ("ra", "rb")) > 0
    with Recording.open(path) as read:
        assert [run.gaps for run in read.runs()] == [0, 0]
