"""What `completion` prints, in the shells that it is for: keys are typed, and what is run then is looked at."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_ctrl.cli import main as cli

# Completes as the program does; of every other call it writes down the words.
STUB = f"""\
#!/bin/sh
[ "$1" != __complete ] || exec {sys.executable} -m kubectl_ctrl.cli.main "$@"
for word; do printf '%s\\n' "$word"; done >"${{0%/*}}/ran.new"
mv "${{0%/*}}/ran.new" "${{0%/*}}/ran"
"""
DEADLINE = 30.0


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """A home with the scripts and the stub in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "kubectl-ctrl"
    program.write_text(STUB)
    program.chmod(0o755)
    for shell in ("bash", "zsh", "fish", "pwsh"):
        assert cli.main(["completion", shell]) == 0
        (tmp_path / shell).write_text(capsys.readouterr().out)
    config = tmp_path / "kubeconfig"
    contexts = ", ".join(f"{{name: {name}, context: {{cluster: c}}}}" for name in ("'two words'", "a:b:c", "a:x"))
    config.write_text(f"{{apiVersion: v1, kind: Config, contexts: [{contexts}]}}")
    (tmp_path / "mine.py").touch()
    kinds = {f"XDG_{kind}_HOME": str(tmp_path / kind.lower()) for kind in ("STATE", "CACHE", "CONFIG", "DATA")}
    path = f"{folder}:{os.environ['PATH']}"
    plain = {"TERM": "dumb", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[3])}
    return {**kinds, **plain, "HOME": str(tmp_path), "PATH": path, "KUBECONFIG": str(config)}


class Shell:
    """An interactive shell at a terminal of its own."""

    def __init__(self, argv: list[str], env: dict[str, str], setup: str) -> None:
        self.home = Path(env["HOME"])
        self._ours, its = pty.openpty()
        self._process = subprocess.Popen(
            argv, env=env, cwd=self.home, stdin=its, stdout=its, stderr=its, start_new_session=True
        )
        os.close(its)
        self._said = ""
        self._type(f"{setup}; PS1=re''ady-\n")
        self._until("ready-")

    def ran(self, keys: str) -> list[str]:
        """The words that kubectl-ctrl got once these keys and Enter were typed."""
        file = self.home / "bin" / "ran"
        file.unlink(missing_ok=True)
        self._type(f"{keys}\n")
        end = time.monotonic() + DEADLINE
        while not file.exists():
            assert time.monotonic() < end, self._said
            self._read(0.05)
        return file.read_text().splitlines()

    def shown(self, keys: str, text: str) -> None:
        """Wait until the terminal shows that text for these keys."""
        self._said = ""
        self._type(keys)
        self._until(text)
        self._type("\x15")

    def end(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._ours)

    def _type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def _until(self, text: str) -> None:
        """Until the text was shown."""
        end = time.monotonic() + DEADLINE
        while text not in self._said:
            assert time.monotonic() < end, f"{text!r} is not in {self._said!r}"
            self._read(0.05)

    def _read(self, patience: float) -> None:
        if select.select([self._ours], [], [], patience)[0]:
            self._said += os.read(self._ours, 65536).decode(errors="replace")


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.programs(name, "mv")) for name in ("bash", "zsh")])
def shell(request: pytest.FixtureRequest, env: dict[str, str]) -> Iterator[Shell]:
    argv, setup = {
        "bash": (["bash", "--norc", "-i"], "source ~/bash; bind 'set show-all-if-ambiguous on'"),
        "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D; source ~/zsh"),
    }[request.param]
    made = Shell(argv, env, setup)
    yield made
    made.end()


# What is typed, with Tab where it says <, and what is run then.
KEYS = {
    "tra<": ["trace"],
    "--color=n<": ["--color=never"],
    "run --leader-elect=req< fo<": ["run", "--leader-elect=required", "foo"],
    "list -o jsonpath=<'{.x}'": ["list", "-o", "jsonpath={.x}"],
    "list -o custom-columns=<": ["list", "-o", "custom-columns="],
    "run --context a:b< foo": ["run", "--context", "a:b:c", "foo"],
    "run --context=a:x<": ["run", "--context=a:x"],
    "run --context tw< fo<": ["run", "--context", "two words", "foo"],
    "run ./mi<": ["run", "./mine.py"],
    "completion ins< --rem<": ["completion", "install", "--remove"],
}


def test_what_keys_become(shell: Shell) -> None:
    assert {keys: shell.ran(f"kubectl-ctrl {keys}".replace("<", "\t")) for keys in KEYS} == KEYS


def test_several_are_shown_with_their_descriptions(shell: Shell) -> None:
    shell.shown("kubectl-ctrl re\t\t", "List, export and prune")


OFFERED = {
    "tra": ["trace\tShow every reconcile of an object: why it ran, and what it did."],
    "run --color=n": ["--color=never"],
    "run --context a:": ["a:b:c\tCluster c", "a:x\tCluster c"],
    "list -o w": ["wide"],
    "run f": ["foo\tone Deployment of nginx per Foo, as kubernetes/sample-controller does it."],
    "version --nothing": [],
}


@pytest.mark.programs("fish", "mv")
def test_what_fish_offers(env: dict[str, str]) -> None:
    def said(line: str) -> list[str]:
        words = ["fish", "--no-config", "-c", f'source ~/fish; complete -C "kubectl-ctrl {line}"']
        done = subprocess.run(words, env=env, cwd=env["HOME"], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert {line: said(line) for line in OFFERED} == OFFERED
    assert [line.partition("\t")[0] for line in said("run ./mi")] == ["./mine.py"]


def test_powershell_gets_a_script_of_balanced_parts(env: dict[str, str]) -> None:
    script = (Path(env["HOME"]) / "pwsh").read_text()
    for opening, closing in ("()", "[]", "{}"):
        assert script.count(opening) == script.count(closing)
    assert "__complete @words" in script
