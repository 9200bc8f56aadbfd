"""Reading a log file while it grows and is rotated; `logs` itself is in tests/runs/test_local.py."""

from __future__ import annotations

from pathlib import Path

from kubectl_ctrl.cli.verbs.logs.main import Log
from kubectl_ctrl.runs import background_notes


def test_a_log_is_followed_over_a_change_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "foo.log"
    path.write_text("one\ntw")
    with Log(path) as log:
        assert log.new() == ["one"]
        with path.open("a") as more:
            more.write("o\nthree\n")
        path.rename(background_notes.older(path))
        assert log.new() == ["two", "three"]
        path.write_text("four\nfi")
        assert log.new() == ["four"]
        assert log.rest() == ["fi"]
        assert log.new() == []


def test_a_log_that_is_to_come_is_waited_for(tmp_path: Path) -> None:
    with Log(tmp_path / "foo.log") as log:
        assert log.new() == []
        (tmp_path / "foo.log").write_text("one\n")
        assert log.new() == ["one"]
