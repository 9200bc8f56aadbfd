from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ctrl.errors import RecordingError
from kubectl_ctrl.history import disk
from kubectl_ctrl.history.disk import WriteLock, on_network

_MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/local ext4 rw 0 0
//nas/share /mnt/my\\040share cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "network"),
    [
        ("/home/me/.local/state/kubectl-ctrl/history.db", True),
        ("/home/local/history.db", False),
        ("/homeless/history.db", False),
        ("/mnt/my share/history.db", True),
        ("/var/history.db", False),
    ],
)
def test_a_network_file_system_is_recognized_by_its_mount(tmp_path: Path, path: str, *, network: bool) -> None:
    (tmp_path / "mounts").write_text(_MOUNTS)
    assert on_network(Path(path), tmp_path / "mounts") is network


def test_without_a_list_of_mounts_the_disk_counts_as_local(tmp_path: Path) -> None:
    assert not on_network(Path("/home/me/history.db"), tmp_path / "nothing")


def test_one_process_has_the_lock_and_others_wait_for_a_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_PATIENCE", 0.02)
    first, second = WriteLock(tmp_path / "history.db"), WriteLock(tmp_path / "history.db")
    with first, pytest.raises(RecordingError, match=r"history\.db' cannot be written"), second:
        raise AssertionError("both hold it")
    with second:
        pass
    for one in (first, second):
        one.close()


def test_on_a_network_file_system_there_is_no_wal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubectl_ctrl.history import database
    from kubectl_ctrl.history.reader import Recording
    from tests.history.made import recording

    monkeypatch.setattr(database, "on_network", lambda path: True)
    path = recording(tmp_path)
    with Recording.open(path) as read:
        assert [run.id for run in read.runs()] == ["r7f3"]
    assert not [one for one in tmp_path.iterdir() if one.name.endswith(("-wal", "-shm"))]
    assert path.read_bytes()[18:20] == bytes([1, 1]), "the file says that it has a WAL"
