"""How each verb that looks back, plans or replays ends; a verdict's code is never an error's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ctrl.cli.main import main
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.value import replace
from tests.cli.own import Write
from tests.cli.verbs.test_trace import KUBECONFIG
from tests.history.made import RUN, begun, done, owned, read_of, recording, woken

# Nobody listens there.
MINE = replace(RUN, server="https://127.0.0.1:1", ca="", context="dev")
LOOK_BACK = ("trace foo/web", "explain foo/web", "queue", "rbac foo --from-trace", "record list", "replay r7f3-1")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One reconcile of a foo, recorded by a run that is over, which found a Deployment in the way of none."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    config = tmp_path / "kubeconfig"
    config.write_text(KUBECONFIG.format(server=MINE.server, namespace="default"))
    monkeypatch.setenv("KUBECONFIG", str(config))
    folder = tmp_path / "kubectl-ctrl"
    foo = owned("Foo", "web", "uid-web", "1", deploymentName="web", replicas=1)
    start = begun(1, woken(CauseKind.ADDED, foo))
    recording(folder, start, done(start, reads=(read_of(foo),)), run=MINE)
    return folder


@pytest.mark.parametrize(
    ("code", "line"),
    [
        # Done.
        (0, "trace foo/web"),
        (0, "trace foo/web 1"),
        (0, "trace foo"),
        (0, "explain foo/web"),
        (0, "explain foo/web 1"),
        (0, "explain foo"),
        (0, "queue"),
        (0, "rbac foo"),
        (0, "rbac foo --from-trace"),
        (0, "record list"),
        (0, "record show r7f3"),
        (0, "record path"),
        (0, "record export r7f3-1"),
        # A verdict: CONVERGED, and its controller does not work; today's foo reads what was not recorded.
        (1, "explain foo/web --exit-code"),
        (9, "replay r7f3-1"),
        # No server.
        (3, "plan foo/web"),
        # Not recorded.
        (4, "trace foo/none --offline"),
        (4, "trace foo/web 99"),
        (4, "trace bars/web --offline"),
        (4, "trace foo/web --recorded-cluster elsewhere"),
        (4, "explain foo/none --offline"),
        (4, "explain foo/none --offline --exit-code"),
        (4, "explain foo/web 99 --exit-code"),
        (4, "queue --recorded-cluster elsewhere"),
        (4, "rbac foo --from-trace --recorded-cluster elsewhere"),
        (4, "record show r0000"),
        (4, "record export r7f3-99"),
        (4, "record export foo/none"),
        (4, "replay r7f3-99"),
        *[(4, f"{line} --from /nowhere/none.db") for line in LOOK_BACK],
        # Wrong words.
        *[(2, f"{line} --no-such-flag") for line in (*LOOK_BACK, "plan foo/web")],
        *[(2, f"{line} --output=table") for line in (*LOOK_BACK, "plan foo/web")],
        (2, "trace"),
        (2, "trace foo/web/more"),
        (2, "trace foo/web --since=soon"),
        (2, "explain"),
        (2, "explain foo/web one"),
        (2, "plan"),
        (2, "plan foo/web -f -"),
        (2, "queue foo bar"),
        (2, "rbac"),
        (2, "rbac foo --from-trace --unused"),
        (2, "record"),
        (2, "record burn"),
        (2, "record show"),
        (2, "record export"),
        (2, "record prune --older-than=soon"),
        (2, "replay"),
        (2, "replay r7f3-1 --bless"),
        # What was listed goes with --yes alone.
        (6, "record prune --all"),
    ],
)
def test_it_ends_with(code: int, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == code, capsys.readouterr()
    printed = capsys.readouterr()
    assert (printed.err != "") >= (code not in (0, 1, 9)), printed
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(
    ("code", "line"),
    [
        *[(1, line) for line in LOOK_BACK if not line.startswith("replay")],
        # Where 1 or 9 is a verdict, an error is none of them.
        (2, "explain foo/web --exit-code"),
        (2, "replay r7f3-1"),
    ],
)
def test_a_recording_that_cannot_be_read_is_a_general_error(
    state: Path, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in state.iterdir():
        file.unlink()
    (state / "history.db").write_bytes(b"this is no database, whatever its name says. " * 100)
    (state / "history.db").chmod(0o600)
    assert main(line.split()) == code, capsys.readouterr()
    assert "error[CTRL-RECORDING]" in capsys.readouterr().err


def test_a_general_error_of_a_plan_is_no_verdict(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    write("mine.py", "raise RuntimeError('no')\n")
    assert main(["plan", "foo/web", "--controller=./mine.py"]) == 2, capsys.readouterr()
