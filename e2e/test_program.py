"""`kubectl_ctrl.run` in a program, with a real API server: the README's controller until Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kubernetes.client import AppsV1Api
from kubernetes.config import new_client_from_config

from e2e.ctrl import Ctrl
from e2e.kube import CHECKOUT, Audit, Kubectl, wait_until

CONTROLLER, MAIN = re.findall(r"^```python\n(.*?)^```$", (CHECKOUT / "README.md").read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "count.py"
    file.write_text(f"import asyncio, kubectl_ctrl\n{CONTROLLER}\n{MAIN}", encoding="utf-8")
    return file


@pytest.fixture
def counts(kubeconfig: Path, namespace: str) -> Iterator[Callable[[], list[str]]]:
    """Reads the labels of the ReplicaSets with the official client."""
    with new_client_from_config(config_file=str(kubeconfig)) as client:  # type: ignore[no-untyped-call]
        apps = AppsV1Api(client)

        def counted() -> list[str]:
            metas = [one.metadata for one in apps.list_namespaced_replica_set(namespace).items]
            return [(meta.labels or {}).get("pod-count", "") for meta in metas if meta]

        yield counted


@pytest.mark.real
def test_it_reconciles_and_records_until_ctrl_c(
    program: Path, kubectl: Kubectl, counts: Callable[[], list[str]], ctrl: Ctrl, audit: Audit
) -> None:
    since = audit.mark()
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    words = [sys.executable, str(program)]
    with subprocess.Popen(
        words, env={**kubectl.env, "PYTHONPATH": str(CHECKOUT)}, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            wait_until(lambda: running.poll() is not None or counts() == ["2"], what="the label of the first count")
            kubectl("scale", "deployment", "web", "--replicas=3")
            wait_until(lambda: running.poll() is not None or counts() == ["3"], what="the label of the second count")
            refused = ctrl("run", str(program), "--once")
            assert (refused.code, str(running.pid) in refused.err) == (6, True), refused
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == -signal.SIGINT, err
    assert counts() == ["3"]

    calls = {(one.verb, one.code) for one in audit.writes(since) if one.resource == "replicasets.apps"}
    assert calls == {("patch", 200)}
    recorded = json.loads(ctrl("trace", "replicasets", "--output=json").checked().out)
    assert {one["outcome"] for one in recorded["attempts"]} == {"done"}
    assert [run["ended"] is not None for run in recorded["runs"]] == [True]
    ctrl("run", str(program), "--once").checked()
