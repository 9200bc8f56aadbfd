"""Objects without a recorded reconcile, explained from their own contents; and trees, live and recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.crds import wait_until_served
from e2e.ctrl import Ctrl
from e2e.kube import Kubectl, wait_until
from e2e.sample import Sample, delete_sample, write_sample
from e2e.test_foo import converged, deployment, foo
from e2e.test_rbac import installed

FOOTER = "inferred; for exact data, run the controller with kubectl ctrl run"


@pytest.fixture
def thing(ctrl: Ctrl, kubectl: Kubectl, tmp_path: Path) -> Iterator[Sample]:
    """A type that no controller of kubectl-ctrl has ever run for."""
    made = write_sample(tmp_path / "thing", "inferred")
    kubectl.apply(made.manifest())
    wait_until_served(kubectl, made.crd)
    yield made
    delete_sample(made, kubectl, ctrl)


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.lstrip().startswith("~")]


@pytest.mark.real
def test_a_deployment_is_explained_by_its_events_writers_and_conditions(
    ctrl: Ctrl, kubectl: Kubectl, namespace: str
) -> None:
    kubectl.create(deployment("web"))
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=110s")
    wait_until(lambda: "ScalingReplicaSet" in kubectl("get", "events"), what="what its controller told of it")
    ran = ctrl.answered("trace", "deploy/web").checked()
    assert ran.out.startswith(f"Deployment {namespace}/web"), ran.out
    assert "Available=True for " in ran.out
    found = rows(ran.out)
    assert any("kubectl-create" in row for row in found)
    assert any("status.conditions" in row and "kube-controller-manager" in row for row in found)
    assert any("event by deployment-controller" in row and "ScalingReplicaSet" in row for row in found)
    assert any("Available=True" in row for row in found)
    assert ran.out.splitlines()[-1] == FOOTER
    document = json.loads(ctrl.answered("trace", "deployment", "web", "-o", "json").checked().out)
    assert (document["source"], document["kind"]) == ("inferred", "Deployment")
    assert {sign["evidence"] for sign in document["signs"]} == {"managedFields", "event", "condition"}


def test_a_resource_of_a_foreign_operator_is_explained_too(
    ctrl: Ctrl, kubectl: Kubectl, thing: Sample, namespace: str
) -> None:
    kubectl.apply(thing.thing("one"))
    scaled = json.dumps({"spec": {"size": 7}})
    kubectl("patch", thing.crd, "one", "--type=merge", f"--patch={scaled}", "--field-manager=other-operator")
    uid = kubectl.json("get", thing.crd, "one")["metadata"]["uid"]
    event: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "one.1"},
        "involvedObject": {"kind": "Thing", "namespace": namespace, "name": "one", "uid": uid},
        "type": "Warning",
        "reason": "Odd",
        "message": "it is odd",
        "source": {"component": "other-operator"},
    }
    kubectl.create(event)
    ran = ctrl.answered("trace", f"things.{thing.group}/one").checked()
    found = rows(ran.out)
    assert any("spec.size by other-operator" in row for row in found), ran.out
    assert any("Warning Odd: it is odd" in row for row in found)
    assert len(found) == 3, "kubectl's, the operator's and the event"
    assert FOOTER in ran.out


def test_missing_and_forbidden_objects_are_not_guessed(ctrl: Ctrl, kubectl: Kubectl) -> None:
    kubectl.create(deployment("web"))
    gone = ctrl.answered("trace", "deploy/none")
    assert (gone.code, gone.out) == (4, "")
    assert "none" in gone.err
    offline = ctrl("trace", "deploy/web", "--offline")
    assert (offline.code, offline.out) == (4, "")
    away = ctrl("trace", "deploy/web", "--server=https://127.0.0.1:1")
    assert (away.code, away.out) == (4, "")
    assert "~" not in away.err


def test_the_tree_is_live_while_the_cluster_answers_and_remembered_after(
    ctrl: Ctrl, kubectl: Kubectl, namespace: str
) -> None:
    for _ in installed(ctrl, kubectl, "foo"):
        kubectl.apply(foo("web", replicas=2))
        ctrl("run", "foo", "--until=foo/web=condition=Ready", "--timeout=3m").checked()
        wait_until(converged(kubectl, "web", 2))
        kubectl("wait", "--for=condition=Ready", "pods", "--all", "--timeout=110s")
        lines = ctrl.answered("trace", "foo/web", "--tree").checked().out.splitlines()
        start = next(at for at, line in enumerate(lines) if line.startswith("OBJECT"))
        tree = [line.split()[:4] for line in lines[start : start + 6]]
        assert (tree[1][0], tree[1][1]) == ("Foo/web", "True")
        assert tree[2][:4] == ["└─", "Deployment/web", "True", "MinimumReplicasAvailable"]
        assert (tree[3][0], tree[3][1].startswith("ReplicaSet/web-"), tree[3][2]) == ("└─", True, "True")
        assert all("Pod/web-" in line and " True " in line for line in lines[start + 4 : start + 6])
        offline = ctrl("trace", "foo/web", "--tree", "--offline").checked()
        assert "└─ ~Deployment/web" in offline.out
        assert "Pod/" not in offline.out
