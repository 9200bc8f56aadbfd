"""What Tab offers out of a recording: quick, silent, and for the context's cluster and namespace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubectl_ctrl.cli.completion import main
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.model.attempt import Observed, Outcome
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.value import replace
from tests.cli.verbs.test_trace import KUBECONFIG
from tests.history.made import FOO, RUN, begun, done, owned, recording, woken, wrote

MINE = replace(RUN, server="https://127.0.0.1:1", ca="", context="dev")
OTHER = replace(
    MINE,
    id="r0bb",
    cluster="c2",
    server="https://10.0.0.1:6443",
    context="staging",
    controllers=(replace(FOO, name="bar"),),
    began=MINE.began - 60,
)
Offered = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two clusters are recorded, and the current context is that of `MINE`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))  # no kubectl is asked: see test_offering.py
    config = tmp_path / "kubeconfig"
    config.write_text(KUBECONFIG.format(server=MINE.server, namespace="default"))
    monkeypatch.setenv("KUBECONFIG", str(config))
    foo, child = owned("Foo", "web", "u1", "1"), owned("Deployment", "web-pods", "d1", "2")
    first = begun(1, woken(CauseKind.ADDED, foo))
    second = replace(begun(2, name="shop"), request=Key("other", "shop"))
    made: list[Observed] = [
        first,
        done(first, wrote(first, 1, child)),
        second,
        done(second, outcome=Outcome.TERMINAL),
        begun(3),
    ]
    recording(tmp_path / "kubectl-ctrl", *made, run=MINE)
    far = replace(begun(1, run=OTHER.id, name="far"), controller="bar")
    recording(tmp_path / "kubectl-ctrl", far, done(far), run=OTHER)
    return tmp_path / "kubectl-ctrl"


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Offered:
    """The candidates and the directive, as kubectl would read them."""

    def offered(*words: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["kubectl_complete-ctrl", *words])
        assert main.main() == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        return [line.partition("\t")[0] for line in printed.out.splitlines()]

    return offered


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["trace", ""], ["foo", "deployment", ":4"]),
        (["trace", "depl"], ["deployment", ":4"]),
        (["trace", "foo/"], ["foo/web", ":0"]),
        (["trace", "foo", ""], ["web", ":4"]),
        (["trace", "foos.samplecontroller/w"], ["foos.samplecontroller/web", ":0"]),
        (["trace", "-n", "other", "foo/"], ["foo/shop", ":0"]),
        (["trace", "deploy/"], ["deploy/web-pods", ":0"]),
        (["trace", "foo/web", ""], ["3", "1", ":4"]),
        (["trace", "r7"], ["r7f3-2", "r7f3-1", ":4"]),
        (["trace", "foo/web", "--id", ""], ["3", "1", ":4"]),
        (["trace", "--recorded-cluster", "staging", "foo/"], ["foo/far", ":0"]),
        (["trace", "--recorded-cluster", ""], ["dev", "staging", ":4"]),
        (["trace", "--controller", ""], ["foo", ":4"]),
        (["trace", "--controller=f"], ["foo", ":4"]),
        (["trace", "--recorded-cluster=staging", "foo/"], ["foo/far", ":0"]),
        (["run", "foo", "--until", "foo/w"], ["foo/web", ":0"]),
        (["run", "foo", "--until=foo/w"], ["foo/web", ":0"]),
        (["trace", "--from", ""], [":0"]),
        (["trace", "ghost/"], [":0"]),
        (["simulate", ""], ["deployment", "statefulset", ":4"]),
        (["simulate", "deployment/"], ["deployment/web-pods", ":0"]),
        (["simulate", "deploy", ""], ["web-pods", ":4"]),
        (["explain", ""], [*BUNDLED, "deployment", ":4"]),
        (["explain", "foo/web", ""], ["3", "1", ":4"]),
        (["explain", "foo", ""], ["web", ":4"]),
        (["plan", "foo/"], ["foo/web", ":0"]),
        (["plan", "depl"], ["deployment", ":4"]),
        (["plan", "-f", ""], [":0"]),
        (["queue", ""], [*BUNDLED, ":4"]),
        (["queue", "--recorded-cluster", "staging", "b"], ["bar", ":4"]),
        (["rbac", "f"], ["foo", ":4"]),
        (["rbac", "foo", ""], [":4"]),
        (["record", "p"], ["path", "prune", ":4"]),
        (["record", "show", ""], ["r7f3", ":4"]),
        (["record", "export", ""], ["r7f3", "foo", "deployment", ":4"]),
        (["record", "export", "foo/w"], ["foo/web", ":0"]),
        (["record", "export", "r7f3-"], ["r7f3-2", "r7f3-1", ":4"]),
        (["record", "path", ""], [":4"]),
        (["record", "prune", "--run", ""], ["r7f3", ":4"]),
        (["replay", ""], ["r7f3-2", "r7f3-1", ":0"]),
        (["replay", "r7f3-2", ""], [":0"]),
        (["replay", "./ca"], [":0"]),
        (["trace", "--no-such-flag", ""], [":4"]),
    ],
)
def test_names_come_out_of_the_recording(offered: Offered, words: list[str], values: list[str]) -> None:
    assert offered(*words) == values


@pytest.mark.parametrize("verb", ["trace", "explain", "plan", "queue", "rbac", "record", "replay"])
def test_every_flag_of_a_verb_is_offered(offered: Offered, verb: str) -> None:
    found = offered(verb, "--")
    assert {"--context", "--namespace", "--help"} <= set(found)
    assert offered(verb, "--contex") == ["--context", ":4"]


def test_without_a_recording_or_with_a_damaged_one_nothing_is_said(offered: Offered, state: Path) -> None:
    (state / "history.db").write_bytes(b"no database, but long enough to be taken for one" * 40)
    assert offered("trace", "") == [":4"]
    assert offered("queue", "") == [*BUNDLED, ":4"]
    for file in state.iterdir():
        file.unlink()
    assert offered("trace", "foo/") == [":0"]
    assert offered("record", "") == ["list", "show", "path", "export", "prune", ":4"]


def test_what_could_drive_the_terminal_is_not_offered(offered: Offered, state: Path) -> None:
    recording(state, run=replace(OTHER, id="r0cc", cluster="c3", context="\x1b[2Jevil\n", began=OTHER.began - 60))
    assert offered("trace", "--recorded-cluster", "") == ["dev", "staging", ":4"]


def test_a_name_is_compared_and_no_pattern(offered: Offered) -> None:
    assert offered("trace", "foo/%") == [":0"]
    assert offered("trace", "foo/w_b") == [":0"]
    assert offered("trace", "foo/' OR 1=1 --") == [":0"]


def test_it_loads_nothing_slow(state: Path) -> None:
    code = (
        "import sys\n"
        "from kubectl_ctrl.cli.completion import main as complete\n"
        "sys.argv = ['kubectl_complete-ctrl', 'trace', 'foo/']\n"
        "complete.main()\n"
        "slow = {'asyncio', 'aiohttp', 'kubernetes', 'rich', 'ssl', 'kubectl_ctrl.runtime', 'kubectl_ctrl.render',\n"
        "        'kubectl_ctrl.model.record', 'kubectl_ctrl.history.reader'}\n"
        "sys.exit(f'{slow & set(sys.modules)}' if slow & set(sys.modules) else 0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == ["foo/web\tFoo", ":0"]
