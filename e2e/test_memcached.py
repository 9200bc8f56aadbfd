"""Memcached on a real API server: the tutorial's walk, what its original got wrong, and every kind of death."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from e2e.ctrl import Ctrl, Started
from e2e.kube import CHECKOUT, Kubectl, wait_until

MANIFESTS = CHECKOUT / "kubectl_ctrl" / "controllers" / "memcached"


def memcached(name: str = "memcached-sample", size: int = 3, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": name},
        "spec": {"size": size, **spec},
    }


@pytest.fixture(autouse=True)
def _crd(kubectl: Kubectl) -> None:
    kubectl("apply", f"--filename={MANIFESTS / 'crd.yaml'}")
    kubectl("wait", "--for=condition=Established", "crd/memcacheds.cache.example.com")


@pytest.fixture
def running(ctrl: Ctrl) -> Started:
    return ctrl.started("run", "memcached")


def pods(kubectl: Kubectl, name: str) -> list[str]:
    found = kubectl.json("get", "pods", f"--selector=app=memcached,memcached_cr={name}")["items"]
    return sorted(pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"])


def condition(obj: dict[str, Any], kind: str = "Available") -> dict[str, Any]:
    found = [one for one in obj.get("status", {}).get("conditions", []) if one["type"] == kind]
    return found[0] if found else {}


def converged(kubectl: Kubectl, name: str, size: int) -> Callable[[], bool]:
    """Whether the Memcached names so many pods, which are there, and says that all is well."""

    def check() -> bool:
        obj = kubectl.find("memcached", name)
        assert obj, f"no memcached {name}"
        status = obj.get("status", {})
        assert len(status.get("nodes", [])) == size, status
        assert status["nodes"] == pods(kubectl, name)
        assert status["readyReplicas"] == size, status
        assert status["observedGeneration"] == obj["metadata"]["generation"], status
        states = {one["type"]: one["status"] for one in status["conditions"]}
        assert states == {"Available": "True", "Progressing": "False", "Degraded": "False"}, status
        return True

    return check


def test_the_tutorials_walk(kubectl: Kubectl, ctrl: Ctrl, running: Started) -> None:
    kubectl("apply", "--filename=-", stdin=ctrl("example", "memcached").out)
    wait_until(converged(kubectl, "memcached-sample", 3), deadline=60)
    for size in (2, 5):
        kubectl("patch", "memcached", "memcached-sample", "--type=merge", f'--patch={{"spec":{{"size":{size}}}}}')
        wait_until(converged(kubectl, "memcached-sample", size), deadline=60)
    kubectl("delete", "memcached", "memcached-sample")
    wait_until(lambda: not kubectl.json("get", "deployments,replicasets,pods")["items"], deadline=60)
