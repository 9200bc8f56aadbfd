"""The recording of a run on a real cluster, also after a kill, and on a full disk."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.crds import install_crd
from e2e.ctrl import Ctrl, Started
from e2e.kube import Kubectl, wait_until
from kubectl_ctrl.errors import NotRecorded
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.model.resources import CONFIGMAPS, DEPLOYMENTS, Resource

FOOS = Resource("samplecontroller.k8s.io", "v1alpha1", "foos", "Foo")

# It creates an object, and then hangs in the middle of its work.
_HANGS = """
import asyncio
from kubectl_ctrl import CONFIGMAPS, Context, Request, controller

async def reconcile(ctx: Context, request: Request) -> None:
    config = await ctx.read.get(CONFIGMAPS, request.name)
    if request.name == "hang" and config is not None:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}
        await ctx.write.create(made, resource=CONFIGMAPS)
        await asyncio.Event().wait()

CONTROLLER = controller("hangs", reconcile).for_(CONFIGMAPS)
"""


def recording_of(env: Mapping[str, str]) -> Path:
    return Path(env["XDG_STATE_HOME"]) / "kubectl-ctrl" / "history.db"


def attempts(path: Path, resource_: Resource, key: Key, **narrow: Any) -> list[RecordedAttempt]:
    try:
        with Recording.open(path, dead=lambda run: True) as read:
            [cluster] = read.clusters()
            return read.attempts(cluster=cluster.key, resource=resource_, key=key, **narrow)
    except (NotRecorded, ValueError):  # the file, or the run in it, does not exist yet
        return []


def foo(name: str, replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": FOOS.api_version,
        "kind": "Foo",
        "metadata": {"name": name},
        "spec": {"deploymentName": name, "replicas": replicas},
    }


@pytest.fixture
def running(kubectl: Kubectl, ctrl: Ctrl) -> Started:
    install_crd(kubectl, "foo")
    return ctrl.started("run", "foo")


@pytest.mark.real
def test_causes_and_changes_are_recorded(
    kubectl: Kubectl, running: Started, namespace: str, env: Mapping[str, str]
) -> None:
    path, key = recording_of(env), Key(namespace, "web")
    running.line(f"recorded in {path}")
    kubectl.apply(foo("web", 1))
    kubectl("wait", "--for=condition=Ready", "foo/web", "--timeout=110s")
    kubectl("patch", "foo", "web", "--type=merge", '--patch={"spec":{"replicas":3}}')
    kubectl("wait", "--for=jsonpath={.status.availableReplicas}=3", "foo/web", "--timeout=110s")
    assert running.stop() == 0
    found = attempts(path, FOOS, key)
    # A change of the Deployment itself may come at the same moment.
    [(scaled, why)] = [(one, why) for one in found for why in one.causes if why.writers == ("kubectl-patch",)]
    assert why.kind is CauseKind.MODIFIED
    assert [(diff.path, diff.old, diff.new) for diff in why.changes.shown] == [("spec.replicas", 1, 3)]
    changed = [diff for made in scaled.writes for diff in made.changes.shown if made.call.resource == DEPLOYMENTS]
    assert [(diff.path, diff.old, diff.new) for diff in changed] == [("spec.replicas", 1, 3)]
    with Recording.open(path) as read:
        [run] = read.runs()
        assert (run.namespace, run.gaps, [played.name for played in run.controllers]) == (namespace, 0, ["foo"])
        assert run.ended is not None
        short = {str(known.resource): known.short_names for known in read.known(run.cluster)}
        assert short["deployments.apps"] == ("deploy",)
        child = kubectl.json("get", "deployment", "web")["metadata"]
        woken = [why for one in found for why in one.causes if why.uid == child["uid"] and why.new_version]
        assert woken, "no attempt was caused by the Deployment"
        written = [made for one in found for made in one.writes if made.call.uid == child["uid"]]
        assert read.writer_of(run.cluster, child["uid"], written[0].call.new_version) is not None
        assert {one.uid for one in found} == {kubectl.json("get", "foo", "web")["metadata"]["uid"]}
        assert read.replayable(scaled.id).reads[0].objects[0]["spec"]["replicas"] == 3


def test_an_attempt_of_a_killed_process_is_interrupted(
    kubectl: Kubectl, ctrl: Ctrl, namespace: str, env: Mapping[str, str], tmp_path: Path
) -> None:
    code, path, key = tmp_path / "hangs.py", recording_of(env), Key(namespace, "hang")
    code.write_text(_HANGS)
    kubectl("create", "configmap", "hang")
    running = ctrl.started("run", str(code))
    wait_until(lambda: [one for one in attempts(path, CONFIGMAPS, key) if one.calls], what="the call in the recording")
    running.kill()
    [cut] = attempts(path, CONFIGMAPS, key)
    assert (cut.interrupted, cut.verdict) == (True, None)
    assert [(made.call.verb, made.call.name) for made in cut.calls] == [("create", "made")]
    assert cut.causes[0].kind is CauseKind.INITIAL


def test_a_full_disk_is_reported_once_while_the_controller_continues(
    kubectl: Kubectl, running: Started, namespace: str, env: Mapping[str, str]
) -> None:
    path = recording_of(env)
    kubectl.apply(foo("first", 1))
    kubectl("wait", "--for=condition=Ready", "foo/first", "--timeout=110s")
    before = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE)
    # Files cannot grow any more, as on a full disk.
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (64 * 1024, before[1]))
    kubectl.apply(foo("second", 2))
    kubectl("wait", "--for=condition=Ready", "foo/second", "--timeout=110s")
    running.line("Recording stopped")
    kubectl("patch", "foo", "second", "--type=merge", '--patch={"spec":{"replicas":3}}')
    kubectl("wait", "--for=jsonpath={.status.availableReplicas}=3", "foo/second", "--timeout=110s")
    assert sum("Recording stopped" in line for line in running.err) == 1
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, before)
    running.line("Recording resumed")
    assert running.stop() == 0
    # The attempts that waited meanwhile were not lost.
    found = attempts(path, FOOS, Key(namespace, "second"))
    assert found[0].causes[0].kind is CauseKind.ADDED
    assert found[-1].verdict is not None
    assert found[-1].verdict.outcome is Outcome.DONE


def test_nothing_is_recorded_with_record_off(
    kubectl: Kubectl, running: Started, ctrl: Ctrl, env: Mapping[str, str], tmp_path: Path
) -> None:
    running.line("recorded in")
    assert running.stop() == 0
    recording_of(env).unlink()
    kubectl.apply(foo("web", 1))
    assert "not recorded (--record off)" in ctrl("run", "foo", "--record=off", "--until-idle").checked().err
    assert not recording_of(env).exists()
    (tmp_path / "folder").mkdir()
    refused = ctrl("run", "foo", f"--record={tmp_path / 'folder'}", "--until-idle").checked()
    assert f"not recorded: The recording '{tmp_path / 'folder'}' is a folder." in refused.err
