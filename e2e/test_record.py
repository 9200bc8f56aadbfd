"""The recording of real runs as a file: listed, exported, read by every verb, pruned; without Secrets."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import stat
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.crds import install_crd
from e2e.ctrl import PROGRAM, Ctrl
from e2e.kube import Kubectl, Ran, wait_until
from e2e.test_foo import converged, foo

READ, MADE, TOKEN = "Canary-of-data-e1", "Canary-of-string-data-e2", "Canary-of-token-e3"

_SPILLS = f'''\
"""spills: keeps a Secret for each ConfigMap, and says what is in it wherever it can."""

import base64

from kubectl_ctrl import CONFIGMAPS, SECRETS, Context, Request, Result, controller, labels_of


async def reconcile(ctx: Context, request: Request) -> Result | None:
    config = await ctx.read.get(CONFIGMAPS, request.name)
    if config is None or "spill" not in labels_of(config):
        return None
    login = await ctx.read.live(SECRETS, "login")
    word = base64.b64decode(login["data"]["word"]).decode()
    made = {{"metadata": {{"name": f"{{request.name}}-made"}}, "stringData": {{"word": "{MADE}", "again": word}}}}
    await ctx.write.ensure(made, owner=config, resource=SECRETS)
    ctx.write.event(config, reason="Spilt", message=f"It is {{word}}.")
    if config["data"]["how"] == "refused":
        bad = {{"metadata": {{"name": "bad", "labels": {{"word": f"!{{word}}!"}}}}}}
        await ctx.write.create(bad, resource=CONFIGMAPS)
    if config["data"]["how"] == "raised":
        raise ValueError(f"It is {{word}} and {{made}}.")
    return None


CONTROLLER = controller("spills", reconcile).for_(CONFIGMAPS).owns(SECRETS)
'''


def recording_of(ctrl: Ctrl) -> Path:
    return Path(ctrl("record", "path").checked().out.strip())


def runs(ctrl: Ctrl, *flags: str) -> dict[str, dict[str, Any]]:
    document = json.loads(ctrl("record", "list", "--output=json", *flags).checked().out)
    return {run["run"]: run for run in document["runs"]}


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir() if one.is_file()}


def newest(told: Ran) -> str:
    """The last attempt in the output of trace."""
    return str(json.loads(told.checked().out)["attempts"][-1]["attempt"])


@pytest.mark.real
def test_a_recording_is_listed_exported_read_and_pruned(
    kubectl: Kubectl, ctrl: Ctrl, namespace: str, tmp_path: Path
) -> None:
    install_crd(kubectl, "foo")
    assert "There is no recording yet" in ctrl("record", "list").checked().err
    running = ctrl.started("run", "foo")
    running.line("leader election")
    kubectl.apply(foo("web"))
    wait_until(converged(kubectl, "web", 1))

    # A current run is listed as running, and is not deleted.
    [(first, run)] = wait_until(lambda: runs(ctrl).items())
    assert (run["state"], run["lostRows"]) == ("runs", 0)
    spared = ctrl("record", "prune", "--all", "--yes").checked()
    assert f"Run {first} is active and is kept." in spared.err
    assert running.stop() == 0
    assert runs(ctrl)[first]["state"] == "ended"
    attempts = runs(ctrl)[first]["attempts"]
    assert attempts > 0

    killed = ctrl.started("run", "foo")
    killed.line("leader election")
    wait_until(lambda: len(runs(ctrl)) == 2)
    killed.kill()
    assert sorted(run["state"] for run in runs(ctrl).values()) == ["died", "ended"]
    assert stat.S_IMODE(recording_of(ctrl).parent.stat().st_mode) == 0o700
    assert modes(recording_of(ctrl).parent) == {0o600}

    # An exported file gives the same output as the recording itself, also on another machine.
    exported, whole = tmp_path / "web.db", tmp_path / "run.db"
    ctrl("record", "export", "foo/web", f"--to={exported}").checked()
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    with whole.open("wb") as out:
        subprocess.run([PROGRAM, "record", "export", first], env=ctrl.env, stdout=out, check=True)
    assert runs(ctrl, f"--from={whole}")[first]["attempts"] == attempts
    told = ctrl("trace", "foo/web", "--utc", "--offline").checked().out
    elsewhere = {"KUBECONFIG": str(tmp_path / "none"), "XDG_STATE_HOME": str(tmp_path / "state")}
    away, place = Ctrl({**ctrl.env, **elsewhere}, tmp_path), f"--namespace={namespace}"
    for file in (exported, whole):
        again = away("trace", "foo/web", "--utc", f"--from={file}", place).checked().out
        assert rows(again)
        assert rows(again) <= rows(told)
    attempt = newest(away("trace", "foo/web", f"--from={whole}", place, "--output=json"))
    assert attempt.startswith(f"{first}-")
    for words in (["explain", "foo/web", place], ["rbac", "foo", "--from-trace"], ["replay", attempt]):
        assert away(*words, f"--from={whole}").checked().out
    assert "foo" in away("queue", "foo", f"--from={whole}").checked().out
    case = tmp_path / "case.json"
    case.write_text(ctrl("record", "export", attempt).checked().out)
    assert "SAME" in away("replay", str(case)).checked().out

    assert_pruned(ctrl, first)


def assert_pruned(ctrl: Ctrl, first: str) -> None:
    """One run, and then everything; prints first what it deletes."""
    refused = ctrl("record", "prune", "--all")
    assert refused.code == 6
    assert "kubectl ctrl record prune --all --yes" in refused.err
    assert len(runs(ctrl)) == 2
    ctrl("record", "prune", f"--run={first}", "--yes").checked()
    assert first not in runs(ctrl)
    ctrl("record", "prune", "--all", "--yes").checked()
    assert runs(ctrl) == {}
    assert ctrl("trace", "foo/web", "--offline").code == 4


def rows(told: str) -> set[str]:
    """The attempts, without the padding: the widths of the columns depend on all attempts of a table."""
    lines = [" ".join(line.split()) for line in told.splitlines()]
    return {line for line in lines if re.match(r"\S+ \d{4}-\d\d-\d\dT|\d{4}-\d\d-\d\dT", line)}


# Secrets.


def spellings(canary: str) -> Iterator[bytes]:
    yield canary.encode()
    for offset in range(3):
        whole = base64.b64encode(b"x" * offset + canary.encode())
        yield whole[4 : len(whole) // 4 * 4 - 4]


def assert_clean(what: str, content: bytes, canaries: list[str]) -> None:
    for canary in canaries:
        for spelling in spellings(canary):
            at = content.find(spelling)
            assert at < 0, f"{what} holds {canary}: ...{content[max(at - 100, 0) : at + 40]!r}"


def values(path: Path) -> Iterator[bytes]:
    """Every value of every table, decompressed."""
    with closing(sqlite3.connect(path)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f"SELECT * FROM {table}"):
                for value in row:
                    if isinstance(value, str | bytes):
                        raw = value.encode() if isinstance(value, str) else value
                        yield raw
                        with suppress(zlib.error):
                            yield zlib.decompress(raw)


@pytest.fixture
def telling(ctrl: Ctrl, kubeconfig: Path, tmp_path: Path) -> tuple[Ctrl, list[str]]:
    """The program with a kubeconfig that has a token too, and the parts of it that must stay secret."""
    config = yaml.safe_load(kubeconfig.read_text())
    keys = []
    for entry in config["users"]:
        entry["user"]["token"] = TOKEN
        keys += [line for line in Path(entry["user"]["client-key"]).read_text().splitlines() if len(line) == 64]
    assert keys
    path = tmp_path / "telling-kubeconfig"
    path.write_text(yaml.safe_dump(config))
    other = Ctrl({**ctrl.env, "KUBECONFIG": str(path)}, tmp_path)
    other.all_started = ctrl.all_started
    return other, [TOKEN, *keys]


@pytest.mark.real
def test_s04_nothing_of_a_secret_is_recorded_logged_exported_or_printed(
    kubectl: Kubectl, telling: tuple[Ctrl, list[str]], tmp_path: Path
) -> None:
    ctrl, canaries = telling[0], [READ, MADE, *telling[1]]
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"word": READ}}
    kubectl("apply", "--filename=-", stdin=json.dumps(secret))
    code = tmp_path / "spills.py"
    code.write_text(_SPILLS)
    text = ctrl.started("run", str(code), "-v=9")
    text.line("leader election")
    for how in ("done", "refused", "raised"):
        meta = {"name": how, "labels": {"spill": "yes"}}
        kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"how": how}})
    wait_until(lambda: kubectl.find("secret", "raised-made"))
    text.line(r"It is \*\*\*")
    text.line(r"\b422\b")
    assert text.stop() == 0
    logged = ctrl("run", str(code), "-v=9", "--log=json", "--once")
    assert_clean("the log", f"{text.output()}{logged.out}{logged.err}".encode(), canaries)
    folder = recording_of(ctrl).parent
    for file in folder.glob("history.db*"):
        assert_clean(file.name, file.read_bytes(), canaries)
    for value in values(folder / "history.db"):
        assert_clean("the recording", value, canaries)
    failed = newest(ctrl("trace", "configmap/raised", "--offline", "--output=json"))
    for words in [
        *(
            ["trace", "configmap/raised", f"--output={form}"]
            for form in ("wide", "jsonl", "yaml", "dot", "otlp", "html")
        ),
        ["trace", "configmap/refused", "--calls", "--diff"],
        ["trace", "secret/done-made", "--calls", "--diff", "--live"],
        ["trace", failed],
        ["explain", "configmap/refused"],
        ["explain", "configmap/raised", "--output=json"],
        ["plan", "configmap/done", f"--controller={code}", "--diff"],
        ["plan", "configmap/raised", f"--controller={code}", "--output=json"],
        ["replay", failed],
        ["record", "export", failed],
        ["record", "show", failed.partition("-")[0]],
        ["rbac", "spills", "--from-trace"],
    ]:
        ran = ctrl(*words, "-v=9")
        assert "bug in kubectl-ctrl" not in ran.err, ran
        assert ran.out or ran.err
        assert_clean(" ".join(words), f"{ran.out}{ran.err}".encode(), canaries)
    copy = tmp_path / "copy.db"
    ctrl("record", "export", "--all", f"--to={copy}").checked()
    for value in (copy.read_bytes(), *values(copy)):
        assert_clean("the copy", value, canaries)
