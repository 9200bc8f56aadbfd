"""`doctor` as it is typed: order, exit codes, documents, `--fix NAME`; on machines that are made for it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl.cli.main import main
from kubectl_ctrl.cli.verbs.doctor.main import CHECKS
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.doctor import leftovers, recordings
from kubectl_ctrl.doctor.checks import Check, CheckInput, run_checks
from kubectl_ctrl.doctor.diagnosis import Group, Line, Mark, RepairOutcome
from kubectl_ctrl.errors import NotInstalled
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.testing.stage import Stage
from tests.cli import ours
from tests.cli.bench import Layout, kubeconfig, laid_out, program
from tests.history.made import begun, done, owned, recording, woken
from tests.render.schemas import check

pytestmark = pytest.mark.programs("chmod")


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without kubeconfig, whose PATH has one empty folder; gives that."""
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name in ("KUBECTL_PATH", "KUBERNETES_MASTER", "KUBERNETES_SERVICE_HOST", "GOBIN", "GOPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    folder = tmp_path / "bin"
    folder.mkdir()
    # A shell for scripts, and nothing else of what this machine has.
    monkeypatch.setenv("PATH", str(folder))
    return folder


def document(capsys: pytest.CaptureFixture[str]) -> Any:
    found = json.loads(capsys.readouterr().out)
    check("doctor.v1", found)
    return found


# Looking.


def test_a_machine_with_nothing_at_all_says_what_to_get(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    headings = [line for line in shown.out.splitlines() if line and not line.startswith(" ")]
    assert headings == ["This machine", "Cluster providers", "The cluster", "Leftovers", "Recordings"]
    for line in (
        "install docker, podman or nerdctl, then kubectl ctrl doctor --fix kind",
        "kubectl ctrl doctor --fix kwok",
        "kubectl-ctrl doctor --fix kubectl",
    ):
        assert f"next: {line}" in shown.out
    assert "sandbox, an API server that is part of kubectl ctrl" in shown.out


def test_the_document_is_what_its_schema_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-o", "json"]) == 0
    found = document(capsys)
    assert (found["state"], found["exitCode"], found["repairs"]) == ("warn", 0, [])
    assert [one["check"] for one in found["checks"]][:2] == ["python", "kubectl"]
    assert main(["doctor", "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["schema"] == "kubectl-ctrl.doctor/v1"


def test_a_dead_context_is_a_line_and_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kubeconfig").write_text(kubeconfig("https://127.0.0.1:1", context="prod-eu"))
    assert main(["doctor", "-o", "json"]) == 3
    (line,) = [one for one in document(capsys)["checks"] if one["group"] == "cluster"]
    assert (line["check"], line["state"], line["exitCode"]) == ("context", "fail", 3)
    assert line["text"].startswith("context prod-eu: ")
    assert "127.0.0.1:1" in line["text"]


def test_a_server_that_says_nothing_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kubectl_ctrl.doctor.checks.PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        (tmp_path / "kubeconfig").write_text(kubeconfig(f"http://127.0.0.1:{server.getsockname()[1]}"))
        assert main(["doctor", "-o", "json"]) == 3
    (line,) = [one for one in document(capsys)["checks"] if one["group"] == "cluster"]
    assert (line["exitCode"], line["text"].partition(" did ")[2]) == (3, "not answer within 0.2 s")


def test_what_starts_a_cluster_of_ours_again_that_hangs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kubectl_ctrl.doctor.checks.PATIENCE", 1.0)
    registry = Registry(tmp_path / "state" / "kubectl-ctrl" / "clusters")
    with socket.create_server(("127.0.0.1", 0)) as server:
        entry = ours.made(registry, "lab", f"https://127.0.0.1:{server.getsockname()[1]}")
        lab = ours.trusting_a_real_authority(entry)
        monkeypatch.setenv("KUBECONFIG", str(lab.kubeconfig))
        for page, command in ((lab, "kubectl ctrl up --name lab"), (entry, "kubectl cluster-info")):
            registry.write(page)
            main(["doctor", "-o", "json"])
            (line,) = [one for one in document(capsys)["checks"] if one["group"] == "cluster"]
            assert (line["check"], line["command"]) == ("context", command)


def test_a_plugin_that_hangs_is_named_and_not_the_server(
    tmp_path: Path, machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kubectl_ctrl.doctor.checks.PATIENCE", 0.2)
    monkeypatch.setattr("kubectl_ctrl.cli.verbs.list.main._TIMEOUT", 0.2)
    program(machine, "login", "kill -STOP $$")
    content = yaml.safe_load(kubeconfig("https://127.0.0.1:1", context="prod-eu"))
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login", "interactiveMode": "Never"}
    content["users"][0]["user"] = {"exec": plugin}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(content))
    late = "the credential plugin 'login' of user 'u' did not answer within 0.2 s"
    assert main(["doctor", "-o", "json"]) == 3
    (line,) = [one for one in document(capsys)["checks"] if one["group"] == "cluster"]
    text = f"context prod-eu: No request was sent to https://127.0.0.1:1: {late}"
    assert (line["exitCode"], line["text"]) == (3, text)
    assert main(["list"]) == 0
    assert capsys.readouterr().err == f"INSTALLED and RUNNING are unknown: {late}.\n"


def test_a_kubeconfig_that_is_none_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kubeconfig").write_text("{")
    assert main(["doctor", "-o", "json"]) == 3
    (line,) = [one for one in document(capsys)["checks"] if one["group"] == "cluster"]
    assert (line["check"], line["exitCode"]) == ("context", 3)


def test_a_configuration_that_would_fail_verbs_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config" / "kubectl-ctrl" / "config.yaml"
    file.parent.mkdir(parents=True)

    def config() -> dict[str, Any]:
        main(["doctor", "-o", "json"])
        (line,) = [one for one in document(capsys)["checks"] if one["check"] == "config"]
        return {name: line[name] for name in ("state", "exitCode", "text")}

    file.write_text("allowContexts: foo")
    assert (config()["state"], config()["exitCode"]) == ("fail", 3)
    assert config()["text"].startswith(f"Invalid configuration '{file}': ")
    file.write_text("allowContexts: [{context: a, server: b}]")
    assert config() == {"state": "info", "exitCode": 0, "text": f"{file} allows 1 context"}


@pytest.mark.parametrize(
    "line",
    [
        "doctor kind",
        "doctor --yes",
        "doctor --allow-context=prod",
        "doctor --fix=",
        "doctor --fix=kind,kwok",
        "doctor --fix=kind kwok",
        "doctor --fix=false kind",
        "doctor --fix minikube",
        "doctor --fix kind kwok",
        "doctor -o wide",
    ],
)
def test_wrong_words_are_refused(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert "error[CTRL-USAGE]" in capsys.readouterr().err


def test_without_kubectl_the_commands_are_told_as_they_can_be_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/local/bin/kubectl-ctrl"])
    main(["doctor"])
    told = capsys.readouterr().out
    assert "kubectl-ctrl doctor --fix kind" in told
    assert "kubectl ctrl " not in told


# How checks are made.


async def test_checks_keep_their_order_and_none_holds_up_another(tmp_path: Path) -> None:
    async def hangs(bench: CheckInput) -> Sequence[Line]:
        await asyncio.Event().wait()
        return ()

    async def breaks(bench: CheckInput) -> Sequence[Line]:
        raise ZeroDivisionError("by nothing")

    async def fails(bench: CheckInput) -> Sequence[Line]:
        raise NotInstalled("There is no CRD.", tried="foos", next_step="kubectl ctrl install foo")

    async def works(bench: CheckInput) -> Sequence[Line]:
        return (Line(check="works", mark=Mark.OK, text="it works"),)

    at = laid_out(tmp_path)
    looks = (("a", hangs), ("b", breaks), ("c", fails), ("d", works))
    checks = [Check(name=name, group=Group.MACHINE, look=look) for name, look in looks]
    checks += [Check(name="r", group=Group.CLUSTER, look=hangs, remote=True)]
    told = {one.group: one.lines for one in await run_checks(checks, await at.bench())}
    slow, bug, error, good = told[Group.MACHINE]
    assert (slow.mark, slow.text) == (Mark.WARN, "a: unknown, since there was no answer within 4 s")
    assert (bug.mark, bug.code) == (Mark.FAIL, 1)
    assert "ZeroDivisionError: by nothing" in bug.text
    assert (error.code, error.text, error.command) == (8, "There is no CRD (foos)", "kubectl ctrl install foo")
    assert good.text == "it works"
    (dead,) = told[Group.CLUSTER]
    assert (dead.mark, dead.code) == (Mark.FAIL, 3)
    at.reachable = NotInstalled("none")
    assert {one.group: one.lines for one in await run_checks(checks, await at.bench())}[Group.CLUSTER] == ()


def test_every_group_is_looked_at() -> None:
    assert {check.group for check in CHECKS} == set(Group)
    assert len({check.name for check in CHECKS}) == len(CHECKS)


# Recordings.


def made(at: Layout) -> Path:
    """Something that is recorded."""
    path = recording_file(at.app.user)
    path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    start = begun(1, woken(CauseKind.ADDED, owned("Foo", "web", "uid-web", "1")))
    recording(path.parent, start, done(start))
    return path


def real(folder: Path) -> Layout:
    at = Layout(Stage(), folder, "--fix")
    at.clock = SystemClock()
    return at


@pytest.mark.real_loop
async def test_recordings_are_told_with_size_and_schema(tmp_path: Path) -> None:
    at = real(tmp_path)
    (line,) = await recordings.recording(await at.bench())
    assert (line.mark, line.text.partition(":")[0]) == (Mark.INFO, "nothing is recorded yet")
    path = made(at)
    (line,) = await recordings.recording(await at.bench())
    assert line.mark is Mark.OK
    assert line.text.startswith(f"{path}: ")
    assert line.text.endswith(", schema 2")


@pytest.mark.real_loop
async def test_modes_that_let_others_in_are_mended(tmp_path: Path) -> None:
    at = real(tmp_path)
    path = made(at)
    path.chmod(0o644)
    line = (await recordings.recording(await at.bench()))[-1]
    assert (line.mark, line.command) == (Mark.WARN, f"chmod go= {path}")
    (repair,) = (await at.fix_all()).diagnosis.repairs
    assert repair.text.endswith("now")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.real_loop
async def test_a_recording_that_is_none_is_a_failure(tmp_path: Path) -> None:
    at = real(tmp_path)
    path = made(at)
    path.write_bytes(b"this is no database " * 1000)
    (line,) = await recordings.recording(await at.bench())
    assert (line.mark, line.code) == (Mark.FAIL, 1)
    assert "record export --all" in line.advice
    (repair,) = (await at.fix_all()).diagnosis.repairs
    assert (repair.outcome, repair.text, repair.advice) == (RepairOutcome.BY_HAND, line.text, line.advice)


@pytest.mark.real_loop
async def test_more_than_runs_keep_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_ctrl.doctor.recordings._OVER", 0.0)
    at = real(tmp_path)
    made(at)
    (line,) = await recordings.recording(await at.bench())
    assert (line.mark, line.command) == (Mark.WARN, "kubectl ctrl record prune --older-than 24h --yes")


# Processes of clusters that are gone.


def in_background(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """A process that was started as one in the background is, and waits."""
    module = folder / "stand-in" / "kubectl_ctrl" / "cli" / "background_main.py"
    module.parent.mkdir(parents=True)
    for one in (module.parent.parent, module.parent):
        (one / "__init__.py").touch()
    module.write_text("input()")
    words = [sys.executable, "-m", "kubectl_ctrl.cli.background_main", str(log)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, cwd=folder / "stand-in")


@pytest.mark.real_loop
async def test_a_controller_in_the_background_of_a_cluster_that_is_gone_is_ended(tmp_path: Path) -> None:
    log = tmp_path / "state" / "kubectl-ctrl" / "clusters" / "gone" / "controllers" / "foo.log"
    with in_background(tmp_path, log) as process:
        try:
            at = real(tmp_path)
            (line,) = await leftovers.machine(await at.bench())
            assert line.text == f"a controller (process {process.pid}) still runs for a managed cluster that is deleted"
            assert line.command == f"kill {process.pid}"
            waiting = asyncio.get_running_loop().run_in_executor(None, process.wait)
            (repair,) = (await at.fix_all()).diagnosis.repairs
            assert repair.text.endswith("it has stopped")
            assert await waiting == -15
        finally:
            process.kill()


@pytest.mark.real_loop
async def test_a_controller_of_a_cluster_whose_page_cannot_be_read_runs_on(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "kubectl-ctrl" / "clusters" / "one"
    (folder / "controllers").mkdir(parents=True)
    (folder / "controllers" / "foo.log").touch()
    (folder / "cluster.json").write_text("{")
    with in_background(tmp_path, folder / "controllers" / "foo.log") as process:
        try:
            at = real(tmp_path)
            (line,) = await leftovers.machine(await at.bench())
            assert line.text.startswith("The registry entry of cluster 'one' cannot be read")
            await at.fix_all()
            assert process.poll() is None
        finally:
            process.kill()


# Getting programs.

GO = """\
case "$1" in
install) for one in "$@"; do echo "$one" >> "$HOME/went"; done; shift
    for one in "$@"; do one=${one%%@*}; echo '#!/bin/sh' > "$GOBIN/${one##*/}"; chmod +x "$GOBIN/${one##*/}"; done ;;
env) echo "$GOBIN"; echo "$HOME/go" ;;
esac
"""
KWOK = "go install sigs.k8s.io/kwok/cmd/kwok@v0.8.0 sigs.k8s.io/kwok/cmd/kwokctl@v0.8.0"


@pytest.fixture
def go(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `go` that writes down what it is told, and makes programs in a folder of its own; gives that."""
    program(machine, "go", GO)
    (machine / "chmod").symlink_to(next(path for path in (Path("/bin/chmod"), Path("/usr/bin/chmod")) if path.exists()))
    folder = tmp_path / "gobin"
    folder.mkdir()
    monkeypatch.setenv("GOBIN", str(folder))
    return folder


def test_without_yes_the_line_is_printed_and_nothing_done(
    go: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--fix", "kwok"]) == 6
    shown = capsys.readouterr()
    assert shown.out == f"{KWOK}\n"
    assert "next: kubectl ctrl doctor kwok --fix --yes" in shown.err
    assert not (tmp_path / "went").exists()


def test_a_name_may_stand_behind_an_equals_sign(go: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--fix=kwok"]) == 6
    shown = capsys.readouterr()
    assert shown.out == f"{KWOK}\n"
    assert "next: kubectl ctrl doctor kwok --fix --yes" in shown.err


def test_with_yes_the_line_is_run(go: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--fix", "kwok", "--yes"]) == 0
    shown = capsys.readouterr()
    assert (tmp_path / "went").read_text().split() == KWOK.split()[1:]
    assert shown.out.splitlines() == [KWOK, f"export PATH={go}:$PATH"]
    assert f"{go} is not in PATH: the line above adds it." in shown.err


def test_what_is_in_path_afterwards_is_named(
    go: Path, machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", f"{machine}{os.pathsep}{go}")
    assert main(["doctor", "--fix", "kind", "--yes"]) == 0
    assert capsys.readouterr().out == f"go install sigs.k8s.io/kind@v0.33.0\nkind is {go / 'kind'}\n"
    assert main(["doctor", "--fix", "kind", "--yes"]) == 0
    assert capsys.readouterr().out == f"kind is already installed: {go / 'kind'}\n"


def test_a_way_that_fails_says_what_it_said(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(machine, "go", "echo no network >&2; exit 1")
    assert main(["doctor", "--fix", "kind", "--yes"]) == 1
    assert "no network" in capsys.readouterr().err


@pytest.mark.parametrize("script", ["exit 0", 'if [ "$1" = env ]; then echo "$HOME"; fi'])
def test_a_way_that_brings_nothing_is_no_success(
    machine: Path, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program(machine, "go", script)
    assert main(["doctor", "--fix", "kind", "--yes"]) == 5
    told = capsys.readouterr().err
    assert "kind is not installed" in told
    assert "next: check its output, or install it by hand: https://kind.sigs.k8s.io" in told


@pytest.mark.parametrize(
    ("have", "name", "line"),
    [
        ("brew", "kind", "brew install kind"),
        ("brew", "kubectl", "brew install kubernetes-cli"),
        ("apt-get", "kubectl", "apt-get install --yes kubectl"),
    ],
)
def test_the_first_that_is_there_gets_it(
    machine: Path, have: str, name: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program(machine, have, "")
    assert main(["doctor", "--fix", name]) == 6
    assert capsys.readouterr().out.removeprefix("sudo --non-interactive ") == f"{line}\n"


def test_where_nothing_gets_it_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--fix", "kind"]) == 5
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "tried: go (not in PATH), brew (not in PATH)" in shown.err


# Mending.


def test_nothing_to_mend_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--fix"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "No leftovers were found.\n"
    assert "Leftovers on the cluster are unknown: " in shown.err


def test_what_is_destroyed_is_listed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "state" / "kubectl-ctrl" / "clusters" / "bare"
    folder.mkdir(parents=True)
    assert main(["doctor", "--fix"]) == 6
    shown = capsys.readouterr()
    assert shown.out == f"  ! listed   the folder {folder} belongs to no cluster\n"
    assert "next: kubectl ctrl doctor --fix --yes" in shown.err
    assert folder.is_dir()
    assert main(["doctor", "--fix", "--yes", "-o", "json"]) == 0
    (repair,) = document(capsys)["repairs"]
    assert (repair["state"], repair["text"].rpartition(": ")[2]) == ("done", "cluster bare is deleted")
    assert not folder.exists()
