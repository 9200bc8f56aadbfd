"""`explain` on recordings that a run left behind, without any cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl.cli.main import main
from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.model.attempt import (
    Attempt,
    Call,
    ControllerState,
    FilteredChange,
    ObjectRead,
    Outcome,
    Tally,
    Verdict,
)
from kubectl_ctrl.model.cause import Cause, CauseKind
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import RecordedType
from kubectl_ctrl.model.resources import CONFIGMAPS, DEPLOYMENTS
from kubectl_ctrl.value import replace
from tests.cli.ours import made
from tests.history.made import FOO, FOOS, KNOWN, NOON, RUN, recording
from tests.objects import started
from tests.render.samples import WEB

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: kind-dev
clusters: [{name: kind-dev, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: kind-dev, context: {cluster: kind-dev, user: me, namespace: default}}]
users: [{name: me, user: {token: not-a-token}}]
"""
RUNS = replace(RUN, server="https://127.0.0.1:1", ca="")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `run` records, of a user whose context is the recorded cluster's; nobody answers there."""
    config = tmp_path / "kubeconfig"
    config.write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "kubectl-ctrl"


def attempt(
    number: int, *causes: Cause, outcome: Outcome = Outcome.DONE, calls: tuple[Call, ...] = (), **said: Any
) -> Attempt:
    start = started(
        f"r7f3-{number}",
        *(causes or [Cause(kind=CauseKind.ADDED, at=NOON, resource=FOOS, key=WEB, uid="uid-web", new_version="1")]),
        at=NOON,
        started=NOON + number,
        request=said.pop("request", WEB),
    )
    reads = said.pop("reads", ())
    verdict = Verdict(outcome=outcome, **said)
    return Attempt(start=start, took=0.04, verdict=verdict, calls=calls, reads=reads)


def write(number: str, **said: Any) -> Call:
    known: dict[str, Any] = {"uid": "uid-deployment", "new_version": "77", "code": 201}
    return Call(
        id=f"r7f3-{number}",
        verb="create",
        resource=DEPLOYMENTS,
        namespace="default",
        name="web",
        started=NOON + 1,
        **{**known, **said},
    )


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert main(["explain", *words, "--output=json"]) == code
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_an_object_by_every_way_to_name_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(state, attempt(1, calls=(write("1.1"),)), run=RUNS)
    for words in (["foo/web"], ["foo", "web"], ["foos/web"], ["foos.samplecontroller.k8s.io/web"]):
        answer = told(capsys, *words)
        assert (answer["verdict"], answer["name"], answer["controller"]) == ("CONVERGED", "web", "foo")


def test_the_exit_code_is_the_verdict_s(state: Path) -> None:
    # The run of this recording has ended: nobody keeps anything converged.
    recording(state, attempt(1), run=RUNS)
    assert main(["explain", "foo/web"]) == 0
    assert main(["explain", "foo/web", "--exit-code"]) == 1


def test_gone_is_good_whoever_runs(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deleted = Cause(kind=CauseKind.DELETED, at=NOON + 2, resource=FOOS, key=WEB, uid="uid-web", old_version="1")
    recording(state, attempt(1), attempt(2, deleted), run=RUNS)
    assert main(["explain", "foo/web", "--exit-code"]) == 0
    assert capsys.readouterr().out.startswith("GONE since ")


def test_what_is_not_recorded_is_4_and_what_is_no_database_is_2(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "foo/web", "--offline"]) == 4
    recording(state, attempt(1), run=RUNS)
    assert main(["explain", "foo/other", "--offline", "--exit-code"]) == 4
    assert main(["explain", "bar/web", "--offline"]) == 4
    assert main(["explain"]) == 2
    assert main(["explain", "foo/web", "1", "2"]) == 2
    (state / "broken.db").write_text("This is no database. " * 100)
    assert main(["explain", "foo/web", f"--from={state / 'broken.db'}"]) == 1
    assert main(["explain", "foo/web", f"--from={state / 'broken.db'}", "--exit-code"]) == 2
    capsys.readouterr()


def test_one_reconcile_and_what_it_caused(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    woken = Cause(
        kind=CauseKind.MODIFIED, at=NOON + 2, resource=DEPLOYMENTS, key=WEB, uid="uid-deployment", new_version="77"
    )
    recording(state, attempt(1, calls=(write("1.1"),)), attempt(2, woken), run=RUNS)
    for words in (["foo/web", "1"], ["r7f3-1"], ["foo/web", "r7f3-1"]):
        answer = told(capsys, *words)
        assert (answer["about"], answer["attempt"]["attempt"]) == ("attempt", "r7f3-1")
        assert "#2, triggered by version 77" in answer["caused"][0]["text"]
    chain = told(capsys, "foo/web", "2")["chain"]
    assert [(step["attempt"], step["link"]) for step in chain] == [("r7f3-1", None), ("r7f3-2", "recorded")]


def test_a_controller_and_a_type_without_a_name(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(state, attempt(1), attempt(2, outcome=Outcome.RETRY, message="no"), run=RUNS)
    answer = told(capsys, "foo")
    assert (answer["about"], answer["attempts"], answer["failures"]) == ("controller", 2, 1)
    assert main(["explain", "foo", "--exit-code"]) == 1
    capsys.readouterr()
    assert main(["explain", "deployments"]) == 2
    assert "'deployments' is a type" in capsys.readouterr().err
    assert main(["explain", "fooo"]) == 2
    assert "foo" in capsys.readouterr().err


def test_an_object_that_is_no_request_is_told_through_the_one_that_is(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording(state, attempt(1, calls=(write("1.1"),)), run=RUNS)
    assert main(["explain", "deployment/web", "--offline"]) == 0
    out, err = capsys.readouterr()
    assert "Deployment default/web is reconciled through Foo default/web (foo)" in err
    assert "state of Foo default/web" in out


def test_what_a_predicate_held_back_comes_out_of_the_recording(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = FilteredChange(
        resource=FOOS,
        key=Key("default", "new"),
        uid="uid-new",
        version="5",
        kind="added",
        by=("is big",),
        at=NOON + 3,
        count=1,
    )
    state_told = ControllerState(controller="foo", at=NOON + 4, leading=True, synced=True, entries=())
    tally = Tally(controller="foo", at=NOON + 4, filtered=(("is big", 1),), versions=(), held=(held,))
    recording(state, attempt(1), state_told, tally, run=RUNS)
    answer = told(capsys, "foo/new", "--offline")
    assert answer["verdict"] == "NOT SEEN"
    assert "was filtered out by 'is big'" in answer["why"][0]["text"]


def test_who_keeps_an_object_comes_before_who_is_kept_from_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(state, attempt(1, calls=(write("1.1"),)), run=RUNS)
    held = FilteredChange(
        resource=DEPLOYMENTS,
        key=WEB,
        uid="uid-deployment",
        version="77",
        kind="added",
        by=("is scaled",),
        at=NOON + 3,
        count=1,
    )
    state_told = ControllerState(controller="scaler", at=NOON + 4, leading=True, synced=True, entries=())
    tally = Tally(controller="scaler", at=NOON + 4, filtered=(("is scaled", 1),), versions=(), held=(held,))
    scaler = replace(FOO, name="scaler", word="scaler", primaries=(DEPLOYMENTS,), owns=())
    recording(state, state_told, tally, run=replace(RUNS, id="r2", controllers=(scaler,)))
    assert main(["explain", "deployment/web", "--offline"]) == 0
    out, err = capsys.readouterr()
    assert "Deployment default/web is reconciled through Foo default/web (foo)" in err
    assert "state of Foo default/web" in out
    assert told(capsys, "deployment/web", "--offline", "--controller=scaler")["verdict"] == "NOT SEEN"


def test_yaml_says_the_same(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(state, attempt(1), run=RUNS)
    assert main(["explain", "foo/web", "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["verdict"] == "CONVERGED"


def test_commands_name_the_cluster_only_where_they_have_to(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(state, attempt(1), attempt(2, request=Key("other", "web")), run=replace(RUNS, namespace=""))
    here, there = told(capsys, "foo/web"), told(capsys, "foo/web", "-n", "other")
    assert here["try"][0]["command"] == "kubectl ctrl trace foo/web"
    assert here["try"][-1] == {"risk": "write", "command": "kubectl ctrl run --context=kind-dev foo -A"}
    assert there["try"][0]["command"] == "kubectl ctrl trace foo/web --namespace=other"


def test_commands_mean_a_cluster_of_ours_in_the_ways_that_each_program_knows_it(
    state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording(state, attempt(1, outcome=Outcome.TERMINAL, message="no"), run=RUNS)
    entry = made(Registry(state / "clusters"), "dev", "https://127.0.0.1:4001")
    for words, known in ((), True), (("--kubeconfig=/dev/null", "--recorded-cluster=kind-dev"), False):
        monkeypatch.setenv("KUBECONFIG", "/dev/null")
        own = f"--kubeconfig={entry.kubeconfig if known else '/dev/null'} --context=kind-dev"
        ours = "--context=kind-dev" if known else own
        source = "" if known else " --recorded-cluster=kind-dev"
        commands = [one["command"] for one in told(capsys, "foo/web", "--offline", *words)["try"]]
        assert commands == [
            f"kubectl ctrl trace {ours} foo/web --id=r7f3-1 --namespace=default{source}",
            f"kubectl {own} edit foo/web --namespace=default",
        ]


def test_code_of_ones_own_is_named_from_where_one_stands(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").touch()
    mine = replace(FOO, word="./mine.py:FOO", code=str(tmp_path / "mine.py"))
    recording(state, attempt(1), run=replace(RUNS, controllers=(mine,)))
    for stands, word in ((tmp_path, "mine.py:FOO"), (Path("/"), f"{tmp_path}/mine.py:FOO".removeprefix("/"))):
        monkeypatch.chdir(stands)
        assert told(capsys, "foo/web")["try"][-1]["command"].startswith(f"kubectl ctrl run --context=kind-dev {word} ")


def test_what_was_not_looked_at_is_not_said_to_be_absent(
    state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubectl_ctrl.story.cases._ATTEMPTS", 2)
    timers = [
        Cause(kind=CauseKind.TIMER, at=NOON + number, attempt=f"r7f3-{number - 1}", detail="1s") for number in (2, 3)
    ]
    recording(state, attempt(1), attempt(2, timers[0]), attempt(3, timers[1]), run=RUNS)
    assert main(["explain", "foo/web"]) == 0
    assert "r7f3-1 was not read" in capsys.readouterr().out


def test_a_controller_is_not_healthy_while_an_object_that_it_read_says_that_it_is_not_ready(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = {"name": "web", "namespace": "default", "uid": "uid-web", "resourceVersion": "7"}
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "Taken"}]}
    seen = ObjectRead(
        verb="get",
        resource=FOOS,
        query=str(WEB),
        found=(("uid-web", "7"),),
        objects=({"metadata": meta, "status": status},),
    )
    recording(state, attempt(1, reads=(seen,)), run=RUNS)
    assert told(capsys, "foo/web")["verdict"] == "NOT CONVERGED"
    assert told(capsys, "foo")["notReady"] == [{"object": "default/web", "said": "Ready=False Taken"}]
    assert main(["explain", "foo"]) == 0
    assert capsys.readouterr().out.startswith("1 of 1 objects NOT READY")


def test_of_several_controllers_the_foremost_verdict_counts(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = replace(FOO, name="bar", word="bar", manager="kubectl-ctrl-bar")
    failing = attempt(2, outcome=Outcome.TERMINAL, message="no")
    failing = replace(failing, start=replace(failing.start, controller="bar"))
    recording(state, attempt(1), failing, run=replace(RUNS, controllers=(FOO, other)))
    answer = told(capsys, "foo/web")
    assert (answer["verdict"], answer["controller"]) == ("NOT CONVERGED", "bar")
    assert answer["notes"] == ["foo reports CONVERGED: add --controller=foo"]
    assert told(capsys, "foo/web", "--controller=foo")["verdict"] == "CONVERGED"


def test_it_looks_back_without_a_loop_and_without_a_client(state: Path) -> None:
    recording(
        state,
        attempt(1, calls=(write("1.1"),)),
        run=RUNS,
        known=(*KNOWN, RecordedType(resource=CONFIGMAPS, singular="configmap")),
    )
    code = (
        "import sys\n"
        "from kubectl_ctrl.cli.main import main\n"
        "words = (['foo/web'], ['foo/web', '1'], ['foo'], ['foo/web', '-o=json'])\n"
        "codes = [main(['explain', *one]) for one in words]\n"
        "loaded = {'asyncio', 'aiohttp', 'kubernetes', 'rich', 'kubectl_ctrl.client.client'} & set(sys.modules)\n"
        "sys.exit(f'{codes} {loaded}' if loaded or any(codes) else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
