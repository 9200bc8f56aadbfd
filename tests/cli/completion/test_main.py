from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.cli.completion import main
from kubectl_ctrl.cli.verbs import table
from kubectl_ctrl.controllers import BUNDLED

Completed = Callable[..., list[str]]


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Completed:
    """The lines without their descriptions."""

    def completed(*words: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["kubectl_complete-ctrl", *words])
        assert main.main() == 0
        out, err = capsys.readouterr()
        assert err == ""
        return [line.partition("\t")[0] for line in out.splitlines()]

    return completed


@pytest.fixture(autouse=True)
def _nothing_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kubeconfig, no recording, no kubectl."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    for kind in ("STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))


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
    completed: Completed, words: list[str], offered: list[str]
) -> None:
    assert completed(*words) == offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ([""], [*table.names(), ":4"]),
        (["tr"], ["trace", ":4"]),
        (["help", "tr"], ["trace", ":4"]),
        (["--color", ""], ["auto", "always", "never", ":4"]),
        (["run", "--color", "a"], ["auto", "always", ":4"]),
        (["run", "--color=n"], ["never", ":4"]),
        (["run", "--leader-elect="], ["auto", "true", "false", "required", ":4"]),
        (["run", "--until-idle="], ["true", "false", ":4"]),
        (["run", "--until-idle", "fo"], ["foo", ":4"]),
        (["run", "--log", ""], ["text", "json", ":4"]),
        (["list", "-o", "w"], ["wide", ":4"]),
        (["list", "-o=na"], ["name", ":4"]),
        (
            ["list", "--output", "jsonp"],
            ["jsonpath=", "jsonpath-as-json=", "jsonpath-file=", ":6"],
        ),
        (["list", "--kubeconfig", ""], [":0"]),
        (["--kubeconfig", ""], [":0"]),
        (["trace", "-o", "js"], ["json", "jsonl", ":4"]),
        (["install", "--dry-run", ""], ["none", "client", "server", ":4"]),
        (["uninstall", "--crds", ""], ["keep", "delete", ":4"]),
        (["doctor", "-o", "j"], ["json", ":4"]),
        (["up", "--provider", "k"], ["kind", "kwok", ":4"]),
        (["down", "--progress="], ["auto", "plain", "json", "none", ":4"]),
        (["plan", "--controller", "fo"], ["foo", ":0"]),
        (["replay", "--code", "me"], ["memcached", ":0"]),
        (["completion", "z"], ["zsh", ":4"]),
        (["completion", "zsh", ""], [":4"]),
        (["run", "--", "--co"], [":4"]),
        (["run", "--", "fo"], ["foo", ":4"]),
        (["version", "-"], ["--output", "--color", "--help", "--v", ":4"]),
        (["version", "--color=never", "--co"], [":4"]),
    ],
)
def test_flags_and_what_they_can_be(completed: Completed, words: list[str], offered: list[str]) -> None:
    assert completed(*words) == offered


def test_an_action_has_only_its_own_flags(completed: Completed) -> None:
    assert {"--name", "--shell", "--path", "--image"} <= set(completed("cluster", "-"))
    behind = {action: set(completed("cluster", action, "--")) for action in ("env", "delete", "create")}
    assert behind["env"] == {"--name", "--shell", "--color", "--help", "--v", ":4"}
    assert "--all" in behind["delete"] - behind["create"]
    assert "--image" in behind["create"] - behind["delete"]


def test_a_flag_is_offered_again_only_where_it_may_be_given_again(completed: Completed) -> None:
    flags = completed("run", "--as=x", "--as-group=a", "-n", "b", "--")
    assert "--as-group" in flags
    assert not {"--as", "--namespace"} & set(flags)


def test_what_is_offered_for_a_flag_is_what_its_help_names() -> None:
    for entry in table.VERBS:
        for flag in table.load(entry).flags:
            for word in flag.choices if flag.metavar else ():
                assert word.rstrip("=") in f"{flag.help} {flag.default}", f"{entry.name} --{flag.long}: {word}"


def test_kubectl_ctrl_itself_answers_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["__complete", "version", "--outp"]) == 0
    assert capsys.readouterr().out == "--output\tOutput format: json or yaml; one line of text by default\n:4\n"


@pytest.mark.parametrize("words", [["run", ""], ["run", "--context", ""], ["down", ""], ["run", "-n", ""], ["ru"]])
def test_it_loads_nothing_slow(words: list[str]) -> None:
    code = (
        "import json, sys\n"
        "from kubectl_ctrl.cli.completion import main as complete\n"
        "complete.main(json.loads(sys.argv[1]))\n"
        "slow = {'asyncio', 'aiohttp', 'kubernetes', 'rich', 'ssl', 'sqlite3', 'kubectl_ctrl.runtime',\n"
        "        'kubectl_ctrl.client.client'} & set(sys.modules)\n"
        "sys.exit(f'{slow}' if slow else 0)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, json.dumps(words)],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    assert (ran.returncode, ran.stderr) == (0, "")
