"""`rbac` on recordings that a run left behind, without any cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl.cli.main import main
from kubectl_ctrl.model.attempt import Attempt, BackgroundCall, Call, ControllerState, Observed, Outcome, Verdict
from kubectl_ctrl.model.record import RecordedController
from kubectl_ctrl.model.resources import CONFIGMAPS, DEPLOYMENTS, EVENTS, LEASES
from kubectl_ctrl.value import replace
from tests.history.made import FOO, NOON, RUN, recording
from tests.objects import started
from tests.render.samples import INITIAL

REFUSED = (
    'deployments.apps "web" is forbidden: User "jane" cannot create resource "deployments" in API group "apps" in the '
    'namespace "default"'
)


def call(verb: str, resource: Any, name: str = "web", **more: Any) -> Call:
    made = Call(id="r7f3-12.1", verb=verb, resource=resource, namespace="default", name=name, started=NOON, code=200)
    return replace(made, **more)


START = started("r7f3-12", INITIAL, at=NOON)


def attempt(*calls: Call) -> Attempt:
    return Attempt(start=START, took=0.04, verdict=Verdict(outcome=Outcome.DONE), calls=calls, reads=())


def rules(text: str) -> list[Any]:
    return [rule for role in yaml.safe_load_all(text) for rule in role["rules"]]


def test_the_least_role_has_what_was_called_in_front_and_behind(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[Observed] = [
        START,
        attempt(call("create", DEPLOYMENTS), call("patch", CONFIGMAPS)),
        BackgroundCall(attempt="r7f3-12", call=call("create", EVENTS)),
        BackgroundCall(attempt="", call=call("get", LEASES, "kubectl-ctrl-foo")),
        BackgroundCall(attempt="", call=call("get", LEASES, "kubectl-ctrl-other")),
    ]
    recording(state, *told)
    assert main(["rbac", "foo", "--from-trace"]) == 0
    shown = capsys.readouterr()
    found = rules(shown.out)
    assert {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["list", "watch", "create"]} in found
    assert {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]} in found
    assert [rule["resourceNames"] for rule in found if "leases" in rule["resources"]] == [["kubectl-ctrl-foo"]]
    assert "from 1 run and 1 reconcile with calls" in shown.err


def test_what_was_refused_is_printed_for_kubectl(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(state, START, attempt(call("create", DEPLOYMENTS, code=403, error=REFUSED)))
    assert main(["rbac", "foo", "--missing", "-o", "yaml"]) == 0
    role, binding = yaml.safe_load_all(capsys.readouterr().out)
    assert role["rules"] == [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]}]
    assert binding["subjects"][0]["name"] == "jane"
    assert main(["rbac", "foo", "--missing", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "List"
    assert main(["rbac", "foo", "--missing", "-o", "text"]) == 0
    assert "denied once" in capsys.readouterr().out


def test_a_cache_that_is_refused_counts_only_while_it_is(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = f"the cache of deployments.apps is forbidden: {REFUSED.replace('create', 'list')}"
    stands = ControllerState(controller="foo", at=NOON, leading=True, synced=False, entries=(), message=message)
    recording(state, stands)
    assert main(["rbac", "foo", "--missing"]) == 0
    assert rules(capsys.readouterr().out.split("---")[0])[0]["verbs"] == ["list"]
    recording(state, replace(stands, message=""), run=replace(RUN, id="r8", began=NOON + 60))
    assert main(["rbac", "foo", "--missing"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, "Nothing is missing" in shown.err) == ("", True)


def test_what_was_not_used(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(state, START, attempt(call("create", DEPLOYMENTS)))
    assert main(["rbac", "foo", "--unused"]) == 0
    out = capsys.readouterr().out
    assert [row.split()[-1] for row in out.splitlines() if row.startswith("deployments.apps")] == ["get,patch,delete"]


def test_a_controller_of_ones_own_is_known_by_its_word_and_by_its_path(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text("")
    mine = RecordedController(
        name="foo",
        word="./mine.py",
        code=str(tmp_path / "mine.py"),
        primaries=FOO.primaries,
        manager="kubectl-ctrl-foo",
    )
    recording(state, START, attempt(call("patch", CONFIGMAPS)), run=replace(RUN, controllers=(mine,)))
    monkeypatch.chdir(tmp_path)
    for word in ("foo", "./mine.py", "mine.py", str(tmp_path)):
        assert main(["rbac", word, "--from-trace"]) == 0
        assert "configmaps" in capsys.readouterr().out
    (tmp_path / "rbac.yaml").write_text(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: mine}\n"
        "rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n"
    )
    assert main(["rbac", "mine.py"]) == 0
    assert "resources: [secrets]" in capsys.readouterr().out
    (tmp_path / "rbac.yaml").unlink()
    assert main(["rbac", "foo", "--unused"]) == 1
    assert "has no rbac.yaml" in capsys.readouterr().err


def test_what_is_wrong_is_said(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rbac", "foo", "--missing"]) == 4
    recording(state, START, attempt())
    assert main(["rbac", "bar", "--missing"]) == 4
    assert main(["rbac"]) == 2
    assert main(["rbac", "foo", "--missing", "--unused"]) == 2
    assert "--missing and --unused" in capsys.readouterr().err


def test_it_looks_back_without_a_loop_and_without_a_client(state: Path) -> None:
    recording(state, START, attempt(call("create", DEPLOYMENTS)))
    code = (
        "import sys\n"
        "from kubectl_ctrl.cli.main import main\n"
        "codes = [main(['rbac', 'foo', *words]) for words in (['--from-trace'], ['--missing'], ['--unused'], [])]\n"
        "codes += [main(['queue']), main(['queue', 'foo', '-o', 'json'])]\n"
        "loaded = {'asyncio', 'aiohttp', 'kubernetes', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'{codes} {loaded}' if loaded or any(codes) else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
