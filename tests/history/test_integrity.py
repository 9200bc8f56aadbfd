from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ctrl.errors import NotRecorded, RecordingError
from kubectl_ctrl.history.database import VERSION
from kubectl_ctrl.history.integrity import health
from kubectl_ctrl.history.pruning import file_size
from kubectl_ctrl.model.cause import CauseKind
from tests.history.made import begun, done, owned, recording, woken


@pytest.fixture
def file(tmp_path: Path) -> Path:
    foo = owned("Foo", "web", "uid-web", "1")
    starts = [begun(number, woken(CauseKind.ADDED, foo)) for number in range(1, 40)]
    recording(tmp_path, *[told for start in starts for told in (start, done(start))])
    return tmp_path / "history.db"


def test_an_intact_recording_is_read_to_the_end(file: Path) -> None:
    found = health(file, lambda: True)
    assert (found.size, found.version, found.whole) == (file_size(file), VERSION, True)
    assert (found.network, found.open_to) == (False, "")


def test_without_time_the_check_is_incomplete(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_ctrl.history.integrity._CHECK_AFTER", 1)
    assert not health(file, lambda: False).whole


def test_open_modes_are_reported(file: Path) -> None:
    file.chmod(0o644)
    assert "0644" in health(file, lambda: True).open_to


def test_damage_in_the_middle_is_found(file: Path) -> None:
    content = bytearray(file.read_bytes())
    page = 4096
    assert len(content) > 12 * page, "There are pages to damage."
    for at in range(4 * page, len(content), page):
        content[at : at + 64] = b"\xff" * 64
    file.write_bytes(bytes(content))
    with pytest.raises(RecordingError, match="corrupt"):
        health(file, lambda: True)


def test_a_missing_file_is_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(NotRecorded):
        health(tmp_path / "none.db", lambda: True)
