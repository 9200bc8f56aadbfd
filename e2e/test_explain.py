"""explain on a real API server: every verdict, with its cause and the next step."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from e2e.crds import install_crd
from e2e.ctrl import Ctrl, Started
from e2e.explain_controllers import FILTERED, HOMELESS, LOOPER, NAIVE, written
from e2e.kube import Kubectl, run, set_quota, wait_until
from e2e.rights import user_of
from e2e.settling import recorded_at_rest
from e2e.test_foo import converged, foo
from e2e.user import User

pytestmark = pytest.mark.usefixtures("_crd")

MERGE = "--type=merge"


@pytest.fixture
def _crd(kubectl: Kubectl) -> None:
    install_crd(kubectl, "foo")


@pytest.fixture
def running(ctrl: Ctrl) -> Started:
    started = ctrl.started("run", "foo")
    started.line("leader election")
    return started


class Explain:
    """`kubectl ctrl explain ... -o json`, repeated until it has the expected verdict."""

    def __init__(self, ctrl: Ctrl) -> None:
        self._ctrl = ctrl

    def __call__(self, *words: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._ctrl.answered("explain", *words, "--output=json").checked().out)
        return told

    def until(self, verdict: str, *words: str) -> dict[str, Any]:
        def said() -> dict[str, Any]:
            ran = self._ctrl("explain", *words, "--output=json")
            assert ran.code == 0, ran.err
            told: dict[str, Any] = json.loads(ran.out)
            assert told["verdict"] == verdict, (told["verdict"], texts(told))
            return told

        return wait_until(said, every=0.3)

    def exit_code(self, *words: str) -> int:
        return self._ctrl("explain", *words, "--exit-code").code


def texts(told: dict[str, Any], part: str = "why") -> str:
    return " | ".join(one["text"] for one in told[part])


def commands(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["risk"], one["command"]) for one in told["try"]]


@pytest.fixture
def explain(ctrl: Ctrl) -> Explain:
    return Explain(ctrl)


def settled(kubectl: Kubectl, ctrl: Ctrl, explain: Explain, replicas: int) -> dict[str, Any]:
    """Wait until the Foo `web` has converged, and nothing triggers a reconcile any more.

    The Deployment's status may change once more after the Foo is ready, and the recording may be behind the server.
    """
    wait_until(converged(kubectl, "web", replicas))

    def recorded() -> dict[str, Any]:
        recorded_at_rest(kubectl, ctrl, "foo/web", "web")
        return explain.until("CONVERGED", "foo/web")

    return wait_until(recorded, every=0.3)


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_converged_then_gone(kubectl: Kubectl, ctrl: Ctrl, explain: Explain) -> None:
    kubectl.apply(foo("web"))
    settled(kubectl, ctrl, explain, 1)
    kubectl("patch", "foo", "web", MERGE, "--patch", '{"spec":{"replicas":3}}')
    told = settled(kubectl, ctrl, explain, 3)
    assert "maintains Deployment/web" in texts(told)
    assert "last write:" in texts(told)
    assert "Ready=True" in texts(told)
    assert told["next"][0]["text"] == "nothing is queued, no timer"
    assert "triggered by Foo, owned Deployment" in texts(told, "next")
    assert told["qualifier"] is None
    # The chain goes back to the edit, through the Deployment whose status followed foo's write.
    assert told["chain"][0]["cause"]["writers"] == ["kubectl-patch"]
    assert told["chain"][0]["cause"]["changed"] == ["spec.replicas"]
    assert told["chain"][-1]["link"] == "inferred"
    assert explain.exit_code("foo/web") == 0
    text = ctrl("explain", "foo", "web").checked().out
    assert text.startswith("CONVERGED for ")
    assert "state of Foo" in text.splitlines()[0]
    for line in text.splitlines():
        assert line.isprintable()
    # One of its reconciles, by id; and the controller.
    number = told["chain"][0]["attempt"].rpartition("-")[2]
    one = explain("foo/web", number)
    assert one["about"] == "attempt"
    assert any(call["verb"] == "apply" and call["code"] == 200 for call in one["attempt"]["calls"])
    health = explain("foo")
    assert (health["about"], health["failing"], health["objects"]) == ("controller", [], 1)
    # A Deployment is not a request of foo: explain uses the Foo that owns it.
    through = ctrl("explain", "deployment/web")
    assert "is reconciled through Foo" in through.err, through
    assert "state of Foo" in through.out

    kubectl("delete", "foo", "web")

    def deleted() -> dict[str, Any]:
        """A reconcile that was triggered before the deletion may be the first not to find it."""
        told = explain.until("GONE", "foo/web")
        assert "it was deleted" in texts(told), texts(told)
        return told

    told = wait_until(deleted, every=0.3)
    assert "a new Foo with this name would be reconciled" in texts(told, "next")
    assert explain.exit_code("foo/web") == 0
    live = explain("foo/web", "--live")
    assert (live["verdict"], live["source"]) == ("GONE", "live")


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_a_rollout_that_hangs_is_waited_for(kubectl: Kubectl, explain: Explain) -> None:
    set_quota(kubectl, "none", "pods=0")
    kubectl.apply(foo("web", replicas=2))

    def hangs() -> dict[str, Any]:
        told = explain.until("WAITING", "foo/web")
        assert "ReplicaFailure=True" in texts(told), texts(told)
        return told

    told = wait_until(hangs, every=0.3)
    assert "waits for rollout 0/2" in texts(told)
    assert "exceeded quota" in texts(told)
    [gap] = told["gap"]
    assert (gap["path"], gap["want"], gap["live"]) == ("status.availableReplicas", 2, 0)
    assert told["chain"][0]["cause"]["kind"] in ("added", "initial list")
    assert any("describe deployments.apps/web" in command for _, command in commands(told))
    assert explain.exit_code("foo/web") == 1


@pytest.mark.usefixtures("running")
def test_a_terminal_mistake_in_the_object(kubectl: Kubectl, explain: Explain) -> None:
    kubectl.apply(foo("web", deployment=""))
    told = explain.until("NOT CONVERGED", "foo/web")
    assert "DeploymentNameMissing" in texts(told)
    assert ("write", commands(told)[1][1]) == commands(told)[1]
    assert "edit foo/web" in commands(told)[1][1]
    assert told["next"][0]["text"] == "nothing is queued, no timer"
    # A write that the server refuses is an error of the reconcile, with its line of code.
    kubectl.apply(foo("long", deployment="Not_A_Name"))
    told = explain.until("NOT CONVERGED", "foo/long")
    assert "terminal: no retry until a change" in texts(told)
    assert told["where"].startswith("foo/reconciler.py:")
    assert told["call"]["code"] == 422
    assert told["call"]["id"].startswith(told["run"])
    [gap] = [one for one in told["gap"] if one["path"] == ""]
    assert (gap["resource"], gap["name"], gap["want"]) == ("deployments.apps", "Not_A_Name", "exists")


@pytest.mark.usefixtures("running")
def test_a_foreign_finalizer_blocks_deletion(kubectl: Kubectl, explain: Explain) -> None:
    kubectl.apply(foo("web"))
    wait_until(converged(kubectl, "web", 1))
    hold = '{"metadata":{"finalizers":["backup.example.com/hold"]}}'
    kubectl("patch", "foo", "web", MERGE, "--patch", hold, "--field-manager=backup-operator")
    kubectl("delete", "foo", "web", "--wait=false")
    told = explain.until("BLOCKED DELETION", "foo/web")
    assert "finalizer backup.example.com/hold: belongs to backup-operator, not to this controller" in texts(told)
    assert told["since"] is not None
    risk, command = commands(told)[-1]
    assert risk == "destroy"
    # The suggested command works as it is.
    words = json.loads(json.dumps(command.split(" ", 1)[1]))
    assert "backup.example.com/hold" in words
    live = explain("foo/web", "--live")
    assert live["verdict"] == "BLOCKED DELETION"
    kubectl("patch", "foo", "web", MERGE, "--patch", '{"metadata":{"finalizers":null}}')
    explain.until("GONE", "foo/web")


def test_its_commands_select_a_managed_cluster_without_a_context_in_the_kubeconfig(user: User, programs: Path) -> None:
    user.up("foo", "--example", "--until-idle", "--name=lab").checked()
    kubectl = Kubectl(programs / "kubectl", {**user.env, "KUBECONFIG": str(user.state / "clusters/lab/kubeconfig")})
    kubectl("patch", "foo", "example-foo", MERGE, '--patch={"metadata":{"finalizers":["example.com/hold"]}}')
    kubectl("delete", "foo", "example-foo", "--wait=false")
    ours = ("explain", "foo/example-foo", f"--context={user.context('lab')}", "--live", "-ojson")
    told = json.loads(user.ctrl.answered(*ours).checked().out)
    assert told["verdict"] == "BLOCKED DELETION"
    assert [risk for risk, _ in commands(told)] == ["read", "write", "destroy"]
    for _, command in commands(told):
        # The user's current context is another one, and has no object of that name. A run would not end.
        line = f"{command} --until-idle" if " run " in command else command
        run("sh", "-c", line, env={**user.env, "PATH": f"{programs}:{user.env['PATH']}"}).checked()
    assert kubectl.find("foo", "example-foo") is None


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_two_managers_fight_over_a_field(kubectl: Kubectl, explain: Explain) -> None:
    kubectl.apply(foo("web", replicas=1))
    wait_until(converged(kubectl, "web", 1))
    rival = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2}}

    def replicas() -> int:
        return int(kubectl.json("get", "deployment", "web")["spec"]["replicas"])

    for _ in range(4):
        kubectl(
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=rival",
            "--filename=-",
            stdin=json.dumps(rival),
        )
        wait_until(lambda: replicas() == 1, what="foo setting it back")
        # The server records the times of writes in whole seconds.
        second = os.times().elapsed
        wait_until(partial(_passed, second))
    told = explain.until("FIGHTING", "foo/web")
    assert "rival and kubectl-ctrl-foo set Deployment/web spec.replicas alternately" in texts(told)
    assert {turn["manager"]: turn["value"] for turn in told["turns"]} == {"rival": 2, "kubectl-ctrl-foo": 1}
    assert "the next write by rival, every" in told["next"][0]["text"]
    assert told["evidence"]
    assert told["chain"][0]["cause"]["writers"] == ["rival"]


@pytest.mark.real
def test_an_autoscaler_fights(kubectl: Kubectl, ctrl: Ctrl, explain: Explain, tmp_path: Path) -> None:
    ctrl.started("run", written(tmp_path, "naive", NAIVE)).line("naive")
    kubectl("create", "configmap", "web", "--from-literal=replicas=1")
    wait_until(lambda: kubectl.try_("get", "deployment", "web").code == 0)
    # Below its minimum it scales up without a metric, at each sync.
    kubectl("autoscale", "deployment", "web", "--min=3", "--max=5", "--cpu=80%")
    hpa, naive = "kube-controller-manager", "kubectl-ctrl-naive"

    def fought() -> dict[str, Any]:
        """Each shown turn has a known manager: a write in the same second as the previous one has none."""
        told = explain.until("FIGHTING", "configmap/web")
        assert {turn["manager"]: turn["value"] for turn in told["turns"]} == {hpa: 3, naive: 1}, told["turns"]
        assert len([row for row in told["evidence"] if row["cause"]["writers"] == [hpa]]) >= 3, told["evidence"]
        return told

    told = wait_until(fought, every=0.3)
    assert f"{hpa} and {naive} set Deployment/web spec.replicas alternately" in texts(told)
    assert told["field"] == "Deployment/web spec.replicas"
    assert told["chain"][0]["cause"]["writers"] == [hpa]
    assert f"the next write by {hpa}, every" in told["next"][0]["text"]
    assert any("get horizontalpodautoscalers" in command for risk, command in commands(told) if risk == "read")
    for turn in told["turns"]:
        assert bool(turn["call"]) == turn["ours"] == (turn["manager"] == naive)
    text = ctrl("explain", "configmap/web").checked().out
    assert [row.split()[-1] for row in text.splitlines() if row.split()[-2:] == [hpa, "3"]] == ["3"] * 3, text
    assert explain.exit_code("configmap/web") == 1


@pytest.mark.usefixtures("running")
def test_another_namespace_is_not_seen(kubectl: Kubectl, explain: Explain, namespace: str) -> None:
    other = f"{namespace}-b"
    kubectl("create", "namespace", other)
    kubectl("apply", f"--namespace={other}", "--filename=-", stdin=json.dumps(foo("web")))
    told = explain.until("NOT SEEN", "foo/web", f"--namespace={other}")
    assert f"watches only namespace {namespace}; this object is in {other}" in texts(told)
    assert any(f" foo --namespace={other}" in command for risk, command in commands(told) if risk == "write")
    kubectl("delete", "namespace", other, "--wait=false")


def test_reasons_why_a_change_does_not_reach_a_controller(
    kubectl: Kubectl, ctrl: Ctrl, explain: Explain, tmp_path: Path
) -> None:
    ctrl.started("run", written(tmp_path, "filtered", FILTERED))
    kubectl("create", "configmap", "settings", "--from-literal=size=1")
    explain.until("CONVERGED", "configmap/settings")
    kubectl("patch", "configmap", "settings", MERGE, "--patch", '{"data":{"size":"2"}}')
    told = explain.until("NOT SEEN", "configmap/settings")
    assert "its last change (data.size by kubectl-patch) was filtered out by 'labels changed'" in texts(told)
    health = explain("filtered")
    assert health["heldBack"]["labels changed"] >= 1
    kubectl("label", "configmap", "settings", "tier=web")
    explain.until("CONVERGED", "configmap/settings")


def test_a_type_without_its_crd_is_not_seen(ctrl: Ctrl, explain: Explain, tmp_path: Path) -> None:
    ctrl.started("run", written(tmp_path, "homeless", HOMELESS))
    told = explain.until("NOT SEEN", "ghost/casper")
    assert "ghosts.ghosts.example.com is not installed" in texts(told)
    assert told["qualifier"]["controller"] == "not ready"


def test_a_controller_that_writes_around_its_door_loops(
    kubectl: Kubectl, ctrl: Ctrl, explain: Explain, tmp_path: Path
) -> None:
    ctrl.started("run", written(tmp_path, "looper", LOOPER))
    kubectl("create", "configmap", "counter", "--from-literal=count=0")
    told = explain.until("LOOPING", "configmap/counter")
    assert "looper triggers itself: it writes ConfigMap/counter data.count" in texts(told)
    assert "kubectl-ctrl-looper" in texts(told)
    assert told["source"] == "recorded"
    assert told["evidence"][0]["cause"]["writers"] in ([], ["kubectl-ctrl-looper"])
    assert told["chain"][0]["cause"]["kind"] in ("added", "initial list")
    assert explain.exit_code("configmap/counter") == 1


@pytest.fixture
def installed(ctrl: Ctrl, kubectl: Kubectl) -> Iterator[None]:
    ctrl("install", "foo").checked()
    yield
    ctrl("uninstall", "foo")


@pytest.mark.usefixtures("installed")
def test_a_missing_permission(kubectl: Kubectl, ctrl: Ctrl, explain: Explain) -> None:
    role = kubectl.json("get", "clusterrole", "kubectl-ctrl-foo")
    for rule in role["rules"]:
        if "deployments" in rule["resources"]:
            rule["verbs"] = [verb for verb in rule["verbs"] if verb != "create"]
    kubectl("replace", "--filename=-", stdin=json.dumps(role))
    may = ("auth", "can-i", "create", "deployments", f"--as={user_of('foo')}")
    wait_until(lambda: kubectl.try_(*may).out == "no\n", what="the API server knows of it")
    ctrl.started("run", "foo", "--as-installed")
    kubectl.apply(foo("web"))

    def refused() -> dict[str, Any]:
        """Between two attempts: while one runs or is due, that is the next step."""
        told = explain.until("NOT CONVERGED", "foo/web")
        assert told["next"][0]["text"].startswith("retry"), told["next"]
        assert told["next"][0]["time"] > told["time"]
        return told

    told = wait_until(refused, every=0.3)
    assert "kubectl-ctrl-foo cannot create apps/deployments in " in texts(told)
    assert told["call"]["code"] == 403
    assert told["where"].startswith("foo/reconciler.py:")
    assert told["chain"][0]["cause"]["kind"] in ("added", "initial list")
    read, write = commands(told)
    assert read[0] == "read"
    assert " rbac foo --missing --output=yaml" in read[1]
    assert write[0] == "write"
    assert re.search(r"\| kubectl --context=\S+ apply -f -$", write[1])


def test_the_verdict_about_a_stopped_controller_has_its_time(
    kubectl: Kubectl, ctrl: Ctrl, explain: Explain, running: Started
) -> None:
    kubectl.apply(foo("web"))
    # Otherwise it may be suspended during a reconcile for the Deployment's last change, which is interrupted then.
    assert settled(kubectl, ctrl, explain, 1)["qualifier"] is None
    program = _python_of(running)
    os.kill(program, signal.SIGSTOP)
    wait_until(lambda: (explain("foo/web")["qualifier"] or {}).get("controller") == "paused")
    assert explain.exit_code("foo/web") == 1
    os.kill(program, signal.SIGKILL)
    running.wait()
    told = explain("foo/web")
    assert (told["verdict"], told["converged"], told["qualifier"]["controller"]) == ("CONVERGED", False, "dead")
    assert told["asOf"] == told["qualifier"]["since"]
    assert "nothing while foo is inactive" in told["next"][0]["text"]
    assert any(re.match(r"kubectl ctrl run --context=\S+ foo\b", command) for _, command in commands(told))
    assert explain.exit_code("foo/web") == 1
    text = ctrl("explain", "foo/web", "--offline").checked().out
    assert "controller dead" in text.splitlines()[0]
    # Created while no controller runs: the cluster has it, and no attempt does.
    kubectl.apply(foo("late"))
    told = explain("foo/late")
    assert told["verdict"] == "NEVER RAN"
    assert "foo is inactive" in texts(told)
    missing = ctrl("explain", "foo/none", "--exit-code")
    assert missing.code == 4, missing
    assert ctrl("explain", "foo/late", "--offline").code == 4


def _passed(since: float) -> bool:
    return os.times().elapsed - since > 1.05


def _python_of(started: Started) -> int:
    """The process that runs controllers: bin/kubectl-ctrl replaces itself with it."""
    return started.process.pid
