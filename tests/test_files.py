"""Files written whole, also under a kill, a full disk and somebody else who writes the same one."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubectl_ctrl import files
from tests.rights import unprivileged

CUT = """
import os, signal, sys
from collections.abc import Callable
from pathlib import Path
from kubectl_ctrl import files
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
files.replace(Path(sys.argv[1]), b"new")
"""


def test_a_kill_leaves_the_old_content_and_the_next_write_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "page"
    files.replace(path, b"old")
    assert subprocess.run([sys.executable, "-c", CUT, path]).returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    files.replace(path, b"newer")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"newer", [path])


def test_a_full_disk_leaves_the_old_content_and_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page"
    files.replace(path, b"old")
    room = [2]

    def nearly_full(handle: int, content: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return room.pop()

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(OSError, match="No space") as caught:
        files.replace(path, b"new")
    assert files.remedy(caught.value) == "free disk space"
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])


def test_who_writes_at_the_same_time_is_waited_for(tmp_path: Path) -> None:
    path, many = tmp_path / "page", 4
    code = "import sys; from pathlib import Path; from kubectl_ctrl import files\n"
    code += "for _ in range(50): files.replace(Path(sys.argv[1]), sys.argv[2].encode() * 9999, sync=False)"
    writers = [subprocess.Popen([sys.executable, "-c", code, path, str(number)]) for number in range(many)]
    assert [writer.wait(timeout=60) for writer in writers] == [0] * many
    assert path.read_bytes() in [str(number).encode() * 9999 for number in range(many)]
    assert [one.name for one in tmp_path.iterdir()] == ["page"]


def test_modes(tmp_path: Path) -> None:
    def mode() -> int:
        return stat.S_IMODE(path.stat().st_mode)

    path = tmp_path / "page"
    files.replace(path, b"1")
    assert mode() == 0o600
    path.chmod(0o644)
    files.replace(path, b"2", keep=True)
    assert mode() == 0o644
    files.replace(path, b"3", mode=0o755)
    assert mode() == 0o755


def test_what_is_there_is_not_created_again(tmp_path: Path) -> None:
    files.create(tmp_path / "one", b"1")
    with pytest.raises(FileExistsError):
        files.create(tmp_path / "one", b"2")
    assert (tmp_path / "one").read_bytes() == b"1"


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_draft_that_was_planted_as_a_link_is_not_written(tmp_path: Path, link: Callable[[Path, Path], None]) -> None:
    path, victim = tmp_path / "page", tmp_path / "victim"
    victim.write_text("precious")
    link(files.draft_of(path), victim)
    files.replace(path, b"new")
    assert (path.read_bytes(), victim.read_text()) == (b"new", "precious")
    assert not path.is_symlink()
    assert not path.samefile(victim)


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can make files of others.")
def test_a_draft_that_is_another_user_s_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "page"
    planted = files.draft_of(path)
    planted.touch()
    planted.chmod(0o666)
    os.chown(planted, 65534, 65534)
    with planted.open("rb") as theirs:
        files.replace(path, b"new")
        assert (path.read_bytes(), theirs.read(), path.stat().st_uid) == (b"new", b"", 0)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.fspath(path))


@pytest.mark.parametrize("plant", [os.mkfifo, _socket])
def test_a_draft_that_is_no_file_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[Path], object]
) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket has to be short
    path = Path("page")
    plant(files.draft_of(path))
    files.replace(path, b"new")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"new", [tmp_path / "page"])


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.replace(tmp_path / "none" / "page", b"new")


def test_a_folder_that_is_not_writable_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with unprivileged(), pytest.raises(PermissionError):
        files.replace(tmp_path / "page", b"new")
    tmp_path.chmod(0o700)
