"""`kubectl ctrl sandbox -- COMMAND`: exit codes, environment, signals, and nothing left, also after a kill."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from e2e.ctrl import PROGRAM, Ctrl, Started
from e2e.kube import CHECKOUT, wait_until
from kubectl_ctrl.processes import of_module

# Prints the signal that ends it, also if it comes twice.
_WAITS = """\
import os, signal, sys
def ended(number, _):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")  # print may be interrupted in the middle of "ready"
    sys.exit(3)
signal.signal(signal.SIGINT, ended)
signal.signal(signal.SIGTERM, ended)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""
WAITS = ("--", sys.executable, "-c", _WAITS)


class Temporary:
    """A user with a folder of their own for temporary files."""

    def __init__(self, folder: Path, env: Mapping[str, str], programs: Path) -> None:
        self.folder = folder / "temporary files"
        self.folder.mkdir()
        path = f"{programs}:{CHECKOUT / 'bin'}:{env['PATH']}"
        self.env = {**env, "PATH": path, "TMPDIR": str(self.folder), "KUBECTL_CTRL_CONTEXT": "prod-eu"}
        self.ctrl = Ctrl(self.env, folder)

    def servers(self) -> tuple[int, ...]:
        return of_module("kubectl_ctrl.sandbox", self.folder, below=True)

    def assert_nothing_is_left(self) -> None:
        assert (self.servers(), list(self.folder.iterdir())) == ((), [])

    def wait_for_nothing(self) -> None:
        wait_until(lambda: not self.servers() and not list(self.folder.iterdir()), deadline=60, what="nothing left")


@pytest.fixture
def user(plain_env: Mapping[str, str], programs: Path, tmp_path: Path) -> Iterator[Temporary]:
    user = Temporary(tmp_path, plain_env, programs)
    yield user
    for started in user.ctrl.all_started:
        started.kill()
    user.wait_for_nothing()


def started(user: Temporary, *words: str) -> Started:
    started = user.ctrl.started("sandbox", *words)
    started.line("ready|export ")
    return started


def test_a_command_has_a_new_cluster_for_itself(user: Temporary) -> None:
    script = "kubectl create configmap mine -o name && kubectl get nodes -o name && env && cat"
    ran = user.ctrl("sandbox", "--nodes=2", "--", "sh", "-c", script, stdin="its input\n").checked()
    lines = ran.out.splitlines()
    assert lines[:3] == ["configmap/mine", "node/sandbox-0", "node/sandbox-1"]
    assert lines[-1] == "its input"
    variables = dict(line.split("=", 1) for line in lines if "=" in line)
    assert "KUBECTL_CTRL_CONTEXT" not in variables
    kubeconfig = Path(variables["KUBECONFIG"])
    assert kubeconfig.parent.parent == user.folder
    assert variables["KUBECACHEDIR"] == str(kubeconfig.parent / "cache")
    assert ran.err == ""
    user.assert_nothing_is_left()
    assert user.ctrl("sandbox", "--", "kubectl", "get", "configmap", "mine").code == 1


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 42", 42), ("kill -9 $$", 137)])
def test_the_exit_code_is_that_of_the_command(user: Temporary, script: str, code: int) -> None:
    ran = user.ctrl("sandbox", "--", "sh", "-c", script)
    assert (ran.code, ran.out, ran.err) == (code, "", "")
    user.assert_nothing_is_left()


def test_a_command_that_cannot_be_started(user: Temporary) -> None:
    ran = user.ctrl("sandbox", "--", "no-such-program")
    assert ran.code == 5
    assert ran.err.startswith("error[CTRL-PREREQUISITE]: The program 'no-such-program' was not found.\n")
    user.assert_nothing_is_left()


def test_a_port_that_another_program_uses(user: Temporary) -> None:
    first = started(user, *WAITS)
    first_port = next(user.folder.glob("*/port")).read_text()
    ran = user.ctrl("sandbox", f"--port={first_port}", "--", "true")
    assert ran.code == 1
    assert f"Another program uses port {first_port}" in ran.err
    first.signal(signal.SIGTERM)
    assert first.wait() == 3
    user.assert_nothing_is_left()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_command_and_its_exit_is_awaited(user: Temporary, number: signal.Signals) -> None:
    one = started(user, *WAITS)
    one.signal(number)
    assert one.wait() == 3
    assert one.out == ["ready", number.name]
    user.assert_nothing_is_left()


def test_ctrl_c_at_a_terminal_reaches_the_command_once(user: Temporary) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(PROGRAM, [str(PROGRAM), "sandbox", *WAITS], user.env)
    shown = b""
    while b"ready" not in shown:
        shown += os.read(terminal, 1024)
    os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    shown += os.read(terminal, 1024)
    os.close(terminal)
    assert shown.decode().split() == ["ready", "^CSIGINT"]
    user.assert_nothing_is_left()


def test_a_kill_leaves_neither_process_nor_files(user: Temporary) -> None:
    command = "echo $$ ready; exec sleep 300"
    one = started(user, "--", "sh", "-c", command)
    assert len(user.servers()) == 1
    one.signal(signal.SIGKILL)
    user.wait_for_nothing()
    os.kill(int(one.out[0].split()[0]), signal.SIGKILL)  # the command goes on, as with every wrapper


def test_two_at_once_are_two_clusters(user: Temporary) -> None:
    script = "kubectl create configmap mine -o name; kubectl get --raw /version >/dev/null; echo ready; sleep 3"
    two = [started(user, "--", "sh", "-c", script) for _ in range(2)]
    assert [one.wait() for one in two] == [0, 0]
    assert [one.out for one in two] == [["configmap/mine", "ready"]] * 2
    user.assert_nothing_is_left()


def test_without_a_command_it_serves_until_ctrl_c(user: Temporary) -> None:
    one = started(user)
    script = f'{one.out[0]}; kubectl get nodes -o json; kubectl config current-context; echo "$KUBECACHEDIR"'
    shell = subprocess.run(["sh", "-c", script], env=user.env, stdout=subprocess.PIPE, text=True, check=True)
    *nodes, context, caches = shell.stdout.splitlines()
    assert [node["metadata"]["name"] for node in json.loads("".join(nodes))["items"]] == ["sandbox-0"]
    assert (context, Path(caches).parent.parent) == ("sandbox", user.folder)
    assert one.stop() == 0
    user.assert_nothing_is_left()


def test_a_server_that_exits_ends_it(user: Temporary) -> None:
    one = started(user)
    os.kill(user.servers()[0], signal.SIGKILL)
    assert one.wait() == 1
    assert one.err[-2].startswith("error[CTRL-CLUSTER]: The API server of the sandbox exited")
    user.assert_nothing_is_left()
