from __future__ import annotations

import sys

import pytest

from kubectl_ctrl.cli import complete
from kubectl_ctrl.controllers import BUNDLED


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["run", ""], [*BUNDLED, ":4"]),
        (["run", "fo"], ["foo", ":4"]),
        (["run", "foo", "fo"], [":4"]),
        (["run", "foo", "--context", ""], [":4"]),
        (["run", "-n", ""], [":4"]),
        (["run", "-A", "fo"], ["foo", ":4"]),
        (["run", "./fo"], [":0"]),
        (["run", "foo", "../"], [":0"]),
        (["run", "."], [":0"]),
        (["run", "mine/contr"], [":0"]),
        (["record", ""], ["list", "show", "path", "export", "prune", ":4"]),
        (["record", "ex"], ["export", ":4"]),
        (["nonsense", ""], [":4"]),
    ],
)
def test_controllers_are_offered_and_files_to_somebody_who_begins_a_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], offered: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-ctrl", *words])
    assert complete.main() == 0
    assert [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()] == offered
