"""`up`, with stand-ins for kind and docker, as its user sees it fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubectl_ctrl.cli import main as cli
from tests.clusters.kindprograms import SAID, TOOLS, Programs, programs

pytestmark = pytest.mark.programs(*TOOLS)

Captured = pytest.CaptureFixture[str]
REASON = 'error: networking.podSubnet: Invalid value: "nonsense": couldn\'t parse subnet'


@pytest.fixture(autouse=True)
def there(production: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """kind makes a node in which kubeadm fails."""
    made = programs(tmp_path / "machine")
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    made.kind_says("kubeadm")
    return made


def test_the_first_failure_tells_what_kind_said_last(capsys: Captured) -> None:
    assert cli.main(["up", "--provider=kind", "--progress=none"]) == 1
    error, tried, then, *below = capsys.readouterr().err.splitlines()
    assert error.endswith("its control plane did not start (kubeadm init failed).")
    assert (tried[:6], then[:5]) == ("tried:", "next:")
    assert below[-1] == f"  {REASON}"
    assert all(line.startswith("  ") for line in below)


def test_all_of_it_stands_above_where_that_is_asked_for(capsys: Captured) -> None:
    assert cli.main(["up", "--provider=kind", "--progress=none", "-v=1"]) == 1
    *above, error, _, _ = capsys.readouterr().err.splitlines()
    assert above == [f"  {line}" for line in (SAID / "kubeadm.txt").read_text().splitlines()]
    assert error.startswith("error[CTRL-CLUSTER]: ")


@pytest.mark.parametrize("words", [[], ["-v=1"]])
def test_a_machine_gets_one_object(words: list[str], capsys: Captured) -> None:
    assert cli.main(["up", "--provider=kind", "--progress=json", *words]) == 1
    told = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [one["error"] for one in told if "error" in one] == ["CTRL-CLUSTER"]
    assert REASON in told[-1]["output"].splitlines()
