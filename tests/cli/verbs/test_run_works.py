"""`run` as a process, against the scripted API server on loopback: it reconciles, prints, records and exits."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj, labels_of
from kubectl_ctrl.model.resources import CONFIGMAPS, LEASES
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.server import ScriptedServer
from tests.client.served import PATIENCE, Served, served
from tests.guard import CHECKOUT
from tests.kubeconfig.kubeconfigs import kubeconfig, written

LABELS = """\
from kubectl_ctrl import CONFIGMAPS, controller


async def reconcile(ctx, request):
    if found := await ctx.read.get(CONFIGMAPS, request.name):
        await ctx.write.patch(found, {"metadata": {"labels": {"seen": found["data"]["word"]}}})


CONTROLLER = controller("labels", reconcile).for_(CONFIGMAPS)
"""


def settings(word: str = "one") -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"word": word}}


def labelled(word: str) -> Callable[[ScriptedServer], bool]:
    return lambda server: labels_of(server.get(CONFIGMAPS, "settings") or {"metadata": {}}).get("seen") == word


@pytest.fixture
def cluster() -> Iterator[Served]:
    with served() as found:
        found.do(lambda server: server.create(settings()))
        yield found


class Terminal:
    """A folder with a controller, and a user whose kubeconfig has the cluster."""

    def __init__(self, folder: Path, url: str) -> None:
        (folder / "labels.py").write_text(LABELS)
        config = written(folder, kubeconfig(cluster={"server": url}, name="kind-test"))
        homes = {f"XDG_{name}_HOME": str(folder / f"{name.lower()}-home") for name in ("STATE", "CONFIG", "CACHE")}
        self.env = {**os.environ, **homes, "KUBECONFIG": str(config), "PYTHONPATH": str(CHECKOUT)}
        self.folder = folder
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "kubectl_ctrl", *words],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def ran(self, *words: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        return end(self.start(*words))

    def recorded(self) -> Any:
        code, out, err = self.ran("trace", "configmap/settings", "--output=json")
        assert (code, err) == (0, "")
        return json.loads(out)


def end(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.fixture
def terminal(cluster: Served, tmp_path: Path) -> Iterator[Terminal]:
    found = Terminal(tmp_path, cluster.url)
    yield found
    for process in found.started:
        process.kill()
        process.communicate()


def test_until_idle_reconciles_prints_records_and_exits_with_0(terminal: Terminal, cluster: Served) -> None:
    code, out, err = terminal.ran("run", "./labels.py", "--until-idle")
    assert code == 0, err
    assert cluster.do(labelled("one"))
    assert re.fullmatch(
        r"\S+ default/settings (r\w+)-1  initial list \| patch ConfigMap/settings 200 \| \d+ms done\n", out
    )
    assert f"labels on context kind-test ({cluster.url}), namespace default" in err
    assert f"recorded in {terminal.folder}/state-home/kubectl-ctrl/history.db" in err

    recorded = terminal.recorded()
    assert [(one["outcome"], one["calls"][0]["code"]) for one in recorded["attempts"]] == [("done", 200)]
    assert [run["ended"] is not None for run in recorded["runs"]] == [True]
    assert f"{recorded['attempts'][0]['attempt']} " in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_follows_changes_until_a_signal_and_exits_with_0(
    terminal: Terminal, cluster: Served, number: signal.Signals
) -> None:
    running = terminal.start("run", "./labels.py")
    cluster.until(labelled("one"))
    cluster.do(lambda server: server.change(CONFIGMAPS, "settings", {"data": {"word": "two"}}))
    cluster.until(labelled("two"))
    running.send_signal(number)
    code, out, err = end(running)
    assert code == 0, err
    first, second = out.splitlines()
    assert " initial list | patch ConfigMap/settings 200 | " in first
    assert " data.word one→two by test | patch ConfigMap/settings 200 | " in second
    recorded = terminal.recorded()
    kinds = {cause["kind"] for one in recorded["attempts"] for cause in one["causes"]}
    assert kinds == {"initial list", "modified"}
    assert [run["ended"] is not None for run in recorded["runs"]] == [True]


def test_it_reconciles_while_it_holds_the_lease_and_gives_it_back(terminal: Terminal, cluster: Served) -> None:
    running = terminal.start("run", "./labels.py", "--leader-elect=required")
    cluster.until(labelled("one"))
    (lease,) = cluster.do(lambda server: server.objects(LEASES))
    assert str(running.pid) in lease["spec"]["holderIdentity"]
    running.send_signal(signal.SIGINT)
    assert end(running)[0] == 0
    (lease,) = cluster.do(lambda server: server.objects(LEASES))
    assert not lease["spec"]["holderIdentity"]


def test_once_with_an_attempt_that_failed_exits_with_1_and_names_its_object(
    terminal: Terminal, cluster: Served
) -> None:
    cluster.do(lambda server: server.faults.fail(Match(verb="patch"), 422, message="No such label."))
    code, out, err = terminal.ran("run", "./labels.py", "--once")
    assert code == 1
    assert "patch ConfigMap/settings 422" in out
    assert err.splitlines()[-1].startswith("  labels default/settings ")
    assert "No such label." in err
    assert [one["calls"][0]["code"] for one in terminal.recorded()["attempts"]] == [422]


def test_a_second_run_of_the_controller_is_refused_and_the_first_goes_on(terminal: Terminal, cluster: Served) -> None:
    first = terminal.start("run", "./labels.py")
    cluster.until(labelled("one"))
    code, out, err = terminal.ran("run", "./labels.py", "--once")
    assert (code, out) == (6, "")
    assert str(first.pid) in err
    first.send_signal(signal.SIGINT)
    assert end(first)[0] == 0


def test_with_log_json_every_line_is_an_object(terminal: Terminal) -> None:
    code, out, err = terminal.ran("run", "./labels.py", "--until-idle", "--log=json")
    assert code == 0
    assert [json.loads(line)["outcome"] for line in out.splitlines()] == ["done"]
    assert all(isinstance(json.loads(line), dict) for line in err.splitlines())
