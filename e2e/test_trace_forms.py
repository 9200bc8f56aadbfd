"""A real run's trace in every format for programs and pictures, read by readers of these formats."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from e2e.crds import install_crd
from e2e.ctrl import Ctrl
from e2e.kube import Kubectl, wait_until
from tests.render.schemas import check
from tests.render.test_dot import tokens
from tests.render.test_otlp import parsed_line, spans_of

OBJECT = "memcached/web"
WEB = {
    "apiVersion": "cache.example.com/v1alpha1",
    "kind": "Memcached",
    "metadata": {"name": "web"},
    "spec": {"size": 2},
}


@pytest.fixture
def recorded(ctrl: Ctrl, kubectl: Kubectl, namespace: str) -> Ctrl:
    """A memcached that grew, was scaled by hand, lost its Deployment, and was deleted with its controller."""
    install_crd(kubectl, "memcached")
    run = ctrl.started("run", "memcached")
    kubectl.apply(WEB)
    kubectl("wait", "--for=condition=Available", OBJECT, "--timeout=110s")
    kubectl("patch", OBJECT, "--type=merge", '--patch={"spec":{"size":4}}')
    wait_until(lambda: kubectl.json("get", "deployment", "web")["status"].get("readyReplicas") == 4)
    kubectl("wait", "--for=condition=Available", OBJECT, "--timeout=110s")
    kubectl("delete", "deployment", "web")
    wait_until(lambda: kubectl.json("get", "deployment", "web")["status"].get("readyReplicas") == 4)
    kubectl("wait", "--for=condition=Available", OBJECT, "--timeout=110s")
    kubectl("delete", OBJECT)
    assert run.stop() == 0
    return ctrl


def form(ctrl: Ctrl, name: str, *words: str) -> str:
    return ctrl("trace", *(words or ("memcached/web",)), f"--output={name}").checked().out


def test_a_trace_in_every_form(recorded: Ctrl) -> None:
    document = json.loads(form(recorded, "json"))
    check("trace.v1", document)
    attempts = document["attempts"]
    assert len(attempts) >= 4
    assert document["source"] == "recorded"
    causes = [cause for attempt in attempts for cause in attempt["causes"]]
    scaled = [
        cause["writers"] for cause in causes if {"path": "spec.size", "old": 2, "new": 4} in cause.get("changes", ())
    ]
    assert scaled == [["kubectl-patch"]]
    assert any(link["kind"] == "followed" for link in document["links"])

    told_again = yaml.safe_load(form(recorded, "yaml"))
    assert told_again == document | {"time": told_again["time"]}
    lines = [json.loads(line) for line in form(recorded, "jsonl").splitlines()]
    assert lines == attempts

    assert tokens(form(recorded, "dot"))[:2] == ["digraph", '"kubectl-ctrl"']
    _check_otlp(form(recorded, "otlp"), document)
    _check_perfetto(json.loads(form(recorded, "perfetto"))["traceEvents"], document)
    _check_page(form(recorded, "html"), document)


def _check_otlp(text: str, document: dict[str, Any]) -> None:
    spans = [span for line in text.splitlines() for span in spans_of(parsed_line(line))]
    roots = [span for span in spans if not span.parent_span_id]
    assert len(roots) == len(document["attempts"])
    assert sum(len(span.links) for span in roots) == len(document["links"])


def _check_perfetto(events: list[dict[str, Any]], document: dict[str, Any]) -> None:
    slices = [event for event in events if event["ph"] == "X" and event["cat"].startswith("reconcile")]
    assert [slice_["args"]["attempt"] for slice_ in slices] == [one["attempt"] for one in document["attempts"]]
    assert len([event for event in events if event["ph"] == "s"]) == len(document["links"])


def _check_page(text: str, document: dict[str, Any]) -> None:
    assert text.count('<tr role="row" data-i="') == len(document["attempts"])
    assert "spec.size 2→4 by kubectl-patch" in text
