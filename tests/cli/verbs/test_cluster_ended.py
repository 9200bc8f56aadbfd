"""`cluster load` and `cluster logs`, ended by a signal while kind is at work: nothing of it goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from kubectl_ctrl.processes import has_exited
from tests.clusters.kindprograms import TOOLS, Programs, programs, ready

pytestmark = pytest.mark.programs(*TOOLS)


@pytest.fixture
def there(production: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    """A cluster of kind's in the user's registry."""
    made = programs(tmp_path / "state" / "kubectl-ctrl")
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    ready(made, made.kind())
    return made


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("words", "hangs"), [(["load", "example/app:1"], "docker-image"), (["logs", "--to=there"], "logs")]
)
def test_kind_ends_with_the_one_who_asked_it(
    words: list[str], hangs: str, number: signal.Signals, there: Programs, tmp_path: Path
) -> None:
    there.says(f"{hangs}.hangs", "")
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from kubectl_ctrl.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen([sys.executable, "-c", code, "cluster", *words], cwd=tmp_path) as asking:
        kind = at_work(there, asking)
        asking.send_signal(number)
        assert asking.wait(60) == 128 + number
    assert has_exited(kind)


def at_work(there: Programs, asking: subprocess.Popen[bytes]) -> int:
    """The pid of the kind that was asked, as soon as it hangs."""
    hanging = there.home / "hanging"
    while not hanging.exists():
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"It ended with {asking.wait(0.05)} before kind was at work.")
    return int(hanging.read_text())
