"""Locks that go with their holder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kubectl_ctrl import locks
from tests.objects import present

HOLDER = """
import sys
from pathlib import Path
from kubectl_ctrl import locks
assert locks.acquire(Path(sys.argv[1])) is not None
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_has_one_holder_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "made" / "lock"
    assert not locks.is_held(path)
    handle = present(locks.acquire(path))
    assert locks.is_held(path)
    assert locks.acquire(path) is None
    locks.release(path, handle)
    assert not locks.is_held(path)
    assert list(path.parent.iterdir()) == []


def test_a_killed_holder_leaves_a_file_that_nobody_holds(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        assert locks.is_held(path)
        holder.kill()
    assert path.exists()
    assert not locks.is_held(path)
    handle = present(locks.acquire(path))
    locks.release(path, handle)


def test_the_lock_of_a_file_that_was_replaced_is_not_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    handle = present(locks.acquire(path))
    path.unlink()
    other = present(locks.acquire(path))
    assert (locks.is_at(handle, path), locks.is_at(other, path)) == (False, True)
    os.close(handle)
    locks.release(path, other)
