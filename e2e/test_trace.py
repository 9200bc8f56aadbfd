"""trace on a real API server: its output equals the results of kubectl and the server's audit log."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from e2e.crds import install_crd
from e2e.ctrl import PROGRAM, AssertRests, Ctrl, Started
from e2e.kube import Audit, Cluster, Kubectl, parts_of, wait_until
from e2e.rights import losing
from e2e.settling import recorded_at_rest
from e2e.terminal import at_terminal
from e2e.test_foo import deployment, foo

MERGE = "--type=merge"


@pytest.fixture(autouse=True)
def _crd(kubectl: Kubectl) -> None:
    install_crd(kubectl, "foo")


@pytest.fixture
def running(ctrl: Ctrl) -> Started:
    started = ctrl.started("run", "foo")
    started.line("leader election")
    return started


def ready(kubectl: Kubectl, name: str = "web") -> None:
    """Its controller has seen the newest generation, and everything is as desired."""

    def is_ready() -> bool:
        found = kubectl.json("get", "foo", name)
        status = found.get("status", {})
        conditions = {one["type"]: one["status"] for one in status.get("conditions", [])}
        replicas = found["spec"].get("replicas", 1)
        return (
            status.get("observedGeneration") == found["metadata"]["generation"]
            and conditions.get("Ready") == "True"
            and status.get("availableReplicas") == replicas
        )

    wait_until(is_ready, what=f"foo/{name} ready")


def recorded(ctrl: Ctrl) -> None:
    """Wait until a reconcile of the Foo is recorded, which may be later than its writes."""
    wait_until(lambda: rows(ctrl("trace", "foo/web", "--offline").out), what="foo/web recorded")


def story(ctrl: Ctrl, *words: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(ctrl("trace", *words, "--output=json").checked().out)
    return told


def causes(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [cause for attempt in told["attempts"] for cause in attempt["causes"]]


def rows(text: str) -> list[str]:
    """The lines of reconciles in piped text."""
    return [line for line in text.splitlines() if re.match(r" *r[0-9a-f]+-\d+ ", line)]


@pytest.mark.real
def test_each_number_is_the_server_s(
    kubectl: Kubectl, ctrl: Ctrl, audit: Audit, running: Started, namespace: str
) -> None:
    since = audit.mark()
    kubectl.create(foo("web"))
    ready(kubectl)
    edited = json.loads(kubectl("patch", "foo", "web", MERGE, '--patch={"spec":{"replicas":3}}', "--output=json"))
    ready(kubectl)
    kubectl("scale", "deployment/web", "--replicas=5")
    wait_until(lambda: kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 3)
    ready(kubectl)
    AssertRests(ctrl, audit, namespace)()

    def all_recorded() -> tuple[dict[str, Any], set[str]]:
        """Nothing triggers a reconcile any more: also not the Deployment, whose status changes after the last write."""
        told = recorded_at_rest(kubectl, ctrl, "foo/web", "web")
        writes = {
            call["id"]: call["code"]
            for attempt in told["attempts"]
            for call in attempt["calls"]
            if call["verb"] in ("create", "patch", "apply", "update", "delete") and not call["dryRun"]
        }
        wrote = [one for one in audit.writes(since, namespace=namespace) if not one.resource.startswith("eve")]
        assert writes == {one.audit_id: one.code for one in wrote}
        assert all(attempt["outcome"] != "running" for attempt in told["attempts"])
        return told, set(writes)

    told, writes = wait_until(all_recorded)
    # The edit is as kubectl made it: both values, its author, and the version in the response to kubectl.
    edit = next(one for one in causes(told) if one.get("newVersion") == edited["metadata"]["resourceVersion"])
    assert edit["writers"] == ["kubectl-patch"]
    assert {"path": "spec.replicas", "old": 1, "new": 3} in edit["changes"]
    drift = next(one for one in causes(told) if {"path": "spec.replicas", "old": 3, "new": 5} in one.get("changes", []))
    assert (drift["resource"], drift["writers"]) == ("deployments.apps", ["kubectl"])

    in_text(ctrl, told, writes=len(writes))
    at_a_terminal(ctrl, told)
    by_number(ctrl, next(one["attempt"] for one in told["attempts"] if edit in one["causes"]), writes)
    of_the_deployment(ctrl, kubectl)
    assert running.stop() == 0


def in_text(ctrl: Ctrl, told: dict[str, Any], *, writes: int) -> None:
    """Through a pipe: each reconcile in one line, untruncated, without colour."""
    text = ctrl("trace", "foo/web").checked().out
    assert len(rows(text)) == len(told["attempts"])
    assert f"{len(told['attempts'])} reconciles" in text
    assert f", {writes} writes" in text
    assert "spec.replicas 1→3 by kubectl-patch" in text
    assert not [line for line in text.splitlines() if "…" in line or "\x1b" in line]
    table = ctrl("trace", "foo").checked().out.splitlines()
    assert re.match(rf"web +{len(told['attempts'])} +0 ", table[1])


def at_a_terminal(ctrl: Ctrl, told: dict[str, Any]) -> None:
    """No line is wider; the same reconciles, and the object's state."""
    for columns in (80, 120):
        code, shown = at_terminal(
            PROGRAM, "trace", "foo/web", "--color=never", "--last=0", env=ctrl.env, columns=columns
        )
        assert code == 0
        assert max(map(len, shown.splitlines())) <= columns
        numbers = re.findall(r"^ {1,3}(\d+) {2}\d\d:\d\d:\d\d ", shown, re.MULTILINE)
        assert numbers == [attempt["attempt"].rpartition("-")[2] for attempt in told["attempts"]]
        assert "generation 2 observed 2" in shown
        assert "Ready=True" in shown


def by_number(ctrl: Ctrl, name: str, writes: set[str]) -> None:
    """One reconcile in full, by its number and by its id; and the calls and diffs of all."""
    full = ctrl("trace", "foo/web", name.rpartition("-")[2]).checked().out
    assert full == ctrl("trace", name).checked().out
    assert "spec.replicas 1→3 by kubectl-patch" in full
    for call in writes:
        assert (call in full) == call.startswith(f"{name}.")
    with_calls = ctrl("trace", "foo/web", "--calls").checked().out
    assert all(f"audit {call}" in with_calls for call in writes)
    differences = ctrl("trace", "foo/web", "--diff").checked().out
    assert re.search(r"^\W*-  replicas: 1$", differences, re.MULTILINE) or "-spec.replicas: 1" in differences


def of_the_deployment(ctrl: Ctrl, kubectl: Kubectl) -> None:
    """It is not a request: its effects, and its writers."""
    related = story(ctrl, "deploy", "web")
    uid = kubectl.json("get", "deployment", "web")["metadata"]["uid"]
    assert related["uid"] == uid
    assert related["attempts"]
    for attempt in related["attempts"]:
        touched = {cause.get("uid") for cause in attempt["causes"]} | {call.get("uid") for call in attempt["calls"]}
        assert uid in touched


# Its first reconcile waits for the test.
_WAITS = """
import asyncio
from pathlib import Path
from kubectl_ctrl import CONFIGMAPS, Context, Request, controller

async def reconcile(ctx: Context, request: Request) -> None:
    await ctx.read.get(CONFIGMAPS, request.name)
    while request.name == "held" and not Path({go!r}).exists():
        await asyncio.sleep(0.05)

CONTROLLER = controller("waits", reconcile).for_(CONFIGMAPS)
"""


def test_merged_causes_are_printed(kubectl: Kubectl, ctrl: Ctrl, tmp_path: Path) -> None:
    """Changes while a reconcile runs are the causes of the next one."""
    code, go = tmp_path / "waits.py", tmp_path / "go"
    code.write_text(_WAITS.format(go=str(go)))
    kubectl("create", "configmap", "held", "--from-literal=size=1")
    ctrl.started("run", str(code))

    def piled() -> list[int]:
        """The number of causes of the next reconcile while one runs."""
        queue = json.loads(ctrl("queue", "waits", "--output=json").checked().out)
        entries = [entry for one in queue["controllers"] for entry in one["entries"] if entry["name"] == "held"]
        return [entry["causes"] for entry in entries if entry["state"] == "running"]

    wait_until(lambda: piled() == [0], what="a running reconcile")
    kubectl("label", "configmap", "held", "one=1")
    kubectl("annotate", "configmap", "held", "two=2")
    kubectl("patch", "configmap", "held", MERGE, '--patch={"data":{"size":"2"}}', "--field-manager=somebody")
    wait_until(lambda: piled() == [3], what="the changes in the queue")
    go.touch()

    def merged() -> str:
        found = [row for row in rows(ctrl("trace", "cm/held").checked().out) if "by somebody" in row]
        assert len(found) == 1
        return found[0]

    row = wait_until(merged)
    for cause in ("metadata.labels", "metadata.annotations", "kubectl-label", "kubectl-annotate", "data.size 1→2"):
        assert cause in row
    exit_code, shown = at_terminal(PROGRAM, "trace", "cm/held", "--color=never", env=ctrl.env, columns=120)
    assert exit_code == 0
    assert "merged: " in shown


def test_it_is_followed_in_another_terminal(kubectl: Kubectl, ctrl: Ctrl, running: Started) -> None:
    kubectl.create(foo("web"))
    ready(kubectl)
    recorded(ctrl)
    follower = ctrl.started("trace", "foo/web", "--watch")
    follower.line("initial list|added by")
    kubectl("patch", "foo", "web", MERGE, '--patch={"spec":{"replicas":2}}')
    follower.line("spec.replicas 1→2 by kubectl-patch")
    ready(kubectl)
    # A new run is followed too.
    assert running.stop() == 0
    again = ctrl.started("run", "foo")
    again.line("leader election")
    wait_until(lambda: len({line.split("-")[0].strip() for line in rows("\n".join(follower.out))}) == 2)
    assert follower.stop() == 0
    ids = [line.split()[0] for line in rows("\n".join(follower.out))]
    assert len(ids) == len(set(ids))
    assert again.stop() == 0


# It sends two writes; between them it waits for the test.
_SLEEPS = """
import asyncio
from pathlib import Path
from kubectl_ctrl import CONFIGMAPS, Context, Request, controller

async def reconcile(ctx: Context, request: Request) -> None:
    config = await ctx.read.get(CONFIGMAPS, request.name)
    if request.name != "cut" or config is None:
        return
    config = await ctx.write.patch(config, {{"data": {{"first": "yes"}}}})
    while not Path({go!r}).exists():
        await asyncio.sleep(0.05)
    await ctx.write.patch(config, {{"data": {{"second": "yes"}}}})

CONTROLLER = controller("sleeps", reconcile).for_(CONFIGMAPS)
"""


@pytest.mark.real
def test_an_interrupted_attempt_is_printed_with_its_call_without_a_response(
    kubectl: Kubectl, ctrl: Ctrl, cluster: Cluster, tmp_path: Path
) -> None:
    code, go = tmp_path / "sleeps.py", tmp_path / "go"
    code.write_text(_SLEEPS.format(go=str(go)))
    kubectl("create", "configmap", "cut")
    running = ctrl.started("run", str(code))

    def calls() -> list[int | None]:
        asked = ctrl("trace", "cm/cut", "--offline", "--output=json")
        told = json.loads(asked.out)["attempts"] if asked.code == 0 else []
        return [call["code"] for call in told[-1]["calls"]] if told else []

    wait_until(lambda: calls() == [200], what="the first patch in the recording")
    follower = ctrl.started("trace", "cm/cut", "--watch")
    follower.line("WHY")
    server = parts_of(cluster.name, kubectl.env)["kube-apiserver"]
    os.kill(server, signal.SIGSTOP)
    try:
        go.touch()
        wait_until(lambda: calls() == [200, None], what="the second patch in the recording")
        running.kill()
        [row] = rows(ctrl("trace", "cm/cut", "--offline").checked().out)
    finally:
        os.kill(server, signal.SIGCONT)
    name = row.split()[0]
    assert row.endswith(" | interrupted")
    assert "patch ConfigMap/cut 200 " in row
    assert "patch ConfigMap/cut outcome unknown" in row
    follower.line(rf"^ *{name} .* interrupted$")
    follower.line(f"^Run {name.partition('-')[0]} exited unexpectedly.$")
    full = ctrl("trace", "cm/cut", name).checked().out
    assert f"{name}.2" in full
    assert "1 interrupted" in ctrl("trace", "cm/cut").checked().out
    code_shown, shown = at_terminal(PROGRAM, "trace", "cm/cut", "--color=never", env=ctrl.env, columns=80)
    assert (code_shown, max(map(len, shown.splitlines())) <= 80) == (0, True)
    assert "exited unexpectedly" in shown
    # A new run retries it, and trace prints that too.
    again = ctrl.started("run", str(code))
    follower.line("^Run r[0-9a-f]+ started, process [0-9]+ on ")
    assert again.stop() == 0
    follower.line(r"^Run r[0-9a-f]+ ended\.$")
    assert follower.stop() == 0


@pytest.mark.real
def test_it_answers_when_the_cluster_does_not(
    kubectl: Kubectl, ctrl: Ctrl, cluster: Cluster, kubeconfig: Path, tmp_path: Path
) -> None:
    """The kubeconfig still has it, with the same server, which does not run any more."""
    with losing(cluster, kubeconfig, tmp_path) as path:
        there = f"--kubeconfig={path}"
        running = ctrl.started("run", "foo", there)
        kubectl.create(foo("web"))
        ready(kubectl)
        assert running.stop() == 0
    before = ctrl("trace", "foo/web", "--offline", there).checked().out
    assert rows(before)
    for words in ([], ["--live"], ["--tree"]):
        asked = ctrl.answered("trace", "foo/web", there, *words).checked()
        assert rows(asked.out) == rows(before)
        assert "as of" in asked.out.splitlines()[0]
        # The output names the live part that could not be read.
        assert bool(re.search("[Aa]s (it was )?recorded.*There was no answer", asked.err)) == bool(words)
    assert "web" in ctrl("trace", "foo", there).checked().out
    assert rows(ctrl("trace", "deploy/web", there).checked().out)
    # Without a recording there is no output then.
    assert ctrl("trace", "deploy/other", there).code != 0


def _without_context(ctrl: Ctrl, folder: Path) -> Ctrl:
    file = folder / "empty.yaml"
    file.write_text("apiVersion: v1\nkind: Config\n")
    return Ctrl({**ctrl.env, "KUBECONFIG": str(file)}, folder)


def test_it_answers_when_all_is_gone(
    kubectl: Kubectl, ctrl: Ctrl, running: Started, tmp_path: Path, namespace: str
) -> None:
    kubectl.create(foo("gone-soon"))
    ready(kubectl, "gone-soon")
    first = kubectl.json("get", "foo", "gone-soon")["metadata"]["uid"]
    kubectl("delete", "foo", "gone-soon", "--wait")
    # The garbage collector discovers new types, such as Foo, every half minute.
    kubectl("wait", "--for=delete", "deployment/gone-soon", "--timeout=150s", timeout=200)
    kubectl.create(foo("gone-soon", replicas=2))
    ready(kubectl, "gone-soon")
    kubectl("delete", "foo", "gone-soon", "--wait")
    wait_until(lambda: "deleted" in ctrl("trace", "foo/gone-soon").checked().out.splitlines()[0])
    assert running.stop() == 0

    told = ctrl("trace", "foo/gone-soon", "--offline").checked().out
    assert f"--uid {first}" in told
    assert "ended" in told
    older = story(ctrl, "foo/gone-soon", f"--uid={first}")
    assert {one["uid"] for one in older["attempts"]} <= {first, ""}
    # No context at all, and one without recorded runs: the only cluster with the object, which is printed first.
    elsewhere = _without_context(ctrl, tmp_path)
    text = elsewhere("trace", "foo/gone-soon").checked().out
    assert text.startswith("cluster ")
    assert rows(text) == rows(told)
    ambiguous = elsewhere("trace", "foo/never-there", "--offline")
    assert ambiguous.code == 4
    assert "--recorded-cluster" in ambiguous.err


def test_an_unrecorded_object_exits_with_4_and_names_the_recorded_ones(
    kubectl: Kubectl, ctrl: Ctrl, running: Started
) -> None:
    kubectl.create(foo("web"))
    ready(kubectl)
    recorded(ctrl)
    missing = ctrl("trace", "foo/wbe", "--offline")
    assert (missing.code, "did you mean web?" in missing.err) == (4, True)
    unknown = ctrl("trace", "foobar/web", "--offline")
    assert (unknown.code, "foos.samplecontroller.k8s.io" in unknown.err) == (4, True)
    # For an object without a controller, trace reads the object itself, and marks each row as inferred.
    kubectl.create(deployment("alone"))
    alone = ctrl.answered("trace", "deploy/alone").checked().out
    assert "~" in alone
    assert ctrl.answered("trace", "deploy/nowhere").code == 4
    for form in ("html", "otlp", "perfetto"):
        code, shown = at_terminal(PROGRAM, "trace", "foo/web", "-o", form, env=ctrl.env)
        assert (code, f"-o {form}" in shown, "> trace." in shown) == (2, True, True)
    assert ctrl("trace", "foo/web", "-o", "html").checked().out.startswith("<!doctype html>")
