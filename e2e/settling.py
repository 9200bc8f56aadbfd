"""Waiting until a cluster and the recording of a run come to rest."""

from __future__ import annotations

import json
from typing import Any

from e2e.ctrl import Ctrl
from e2e.kube import Kubectl


def nothing_moves(kubectl: Kubectl) -> bool:
    """Every Deployment and ReplicaSet is complete, and no pod terminates: a rollout ends before its last pod does."""
    for one in kubectl.json("get", "deployments,replicasets,pods")["items"]:
        assert "deletionTimestamp" not in one["metadata"], one["metadata"]["name"]
        if one["kind"] != "Pod":
            status, wanted = one["status"], one["spec"]["replicas"]
            counts = [status.get(key, 0) for key in ("replicas", "availableReplicas", "terminatingReplicas")]
            assert counts == [wanted, wanted, 0], one["metadata"]["name"]
            assert status.get("observedGeneration") == one["metadata"]["generation"], one["metadata"]["name"]
    return True


def recorded_at_rest(kubectl: Kubectl, ctrl: Ctrl, target: str, child: str) -> dict[str, Any]:
    """The trace of an object once nothing moves, and a reconcile for the last version of its Deployment is recorded."""
    nothing_moves(kubectl)
    version = kubectl.json("get", "deployment", child)["metadata"]["resourceVersion"]
    told: dict[str, Any] = json.loads(ctrl("trace", target, "--output=json").checked().out)
    assert version in [cause.get("newVersion") for one in told["attempts"] for cause in one["causes"]], version
    return told
