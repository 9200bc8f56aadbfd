"""From the flags and controllers of `run` to the options of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ctrl.cli.foreground.run import options_of
from kubectl_ctrl.cli.verbs import table
from kubectl_ctrl.loader import sources
from tests.objects import present

MINE = """\
from kubectl_ctrl import CONFIGMAPS, controller

async def reconcile(ctx, request): ...

CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)
"""


@pytest.mark.parametrize(
    ("words", "read_only"),
    [
        (["podcount"], False),
        (["podcount", "--reload"], True),
        (["./mine.py"], True),
        (["podcount", "./mine.py"], True),
    ],
)
def test_code_that_is_not_bundled_or_being_changed_gets_read_only_objects(
    words: list[str], read_only: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    given = present(table.load(table.find("run")).parse(words, {}))
    assert options_of(given, sources.resolve(given.arguments)).read_only_objects is read_only
