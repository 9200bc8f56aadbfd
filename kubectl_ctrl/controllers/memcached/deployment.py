"""The desired Deployment of a Memcached, and the rollout state of a live one. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_ctrl import Obj, condition_is_true, find_condition, generation_of, name_of, namespace_of

# On every pod and ReplicaSet of a Memcached; their caches select by it.
CR_LABEL = "memcached_cr"

_IMAGE = "memcached:1.4.36-alpine"
# The tutorial has `-m=64`: memcached 1.4 reads that as 64 megabytes, 1.6 as no number, and exits.
_COMMAND = ("memcached", "-m", "64", "-o", "modern", "-v")
_PORT = 11211  # memcached's default


def desired(memcached: Obj, live: Obj | None) -> Obj:
    """The fields of the Deployment that this controller owns; `live` is the existing one, if any."""
    selector, labels = _selection(memcached, live)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name_of(memcached), "namespace": namespace_of(memcached)},
        "spec": {
            "replicas": int(memcached["spec"]["size"]),
            "selector": selector,
            "template": {"metadata": {"labels": labels}, "spec": _pod_spec(memcached["spec"])},
        },
    }


def own_labels(memcached: Obj) -> dict[str, str]:
    """The labels that identify this Memcached's pods."""
    return {"app": "memcached", CR_LABEL: name_of(memcached)}


def kept_selector(memcached: Obj, live: Obj | None) -> Obj | None:
    """The existing selector where it differs from the desired one: a selector is immutable."""
    selector: Obj | None = live["spec"]["selector"] if live is not None else None
    return None if selector == {"matchLabels": own_labels(memcached)} else selector


def _selection(memcached: Obj, live: Obj | None) -> tuple[Obj, dict[str, str]]:
    """The selector and the pod labels. Server-side apply keeps labels of others, such as matchExpressions may need."""
    labels = own_labels(memcached)
    kept = kept_selector(memcached, live)
    if kept is None:
        return {"matchLabels": labels}, labels
    return kept, {**labels, **(kept.get("matchLabels") or {})}


def _pod_spec(spec: Obj) -> Obj:
    port = spec.get("containerPort")
    return {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "memcached",
                "image": spec.get("image") or _IMAGE,
                "imagePullPolicy": "IfNotPresent",
                "command": [*_COMMAND, *(() if port is None else ("-p", str(port)))],
                "ports": [{"name": "memcached", "containerPort": port or _PORT, "protocol": "TCP"}],
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 1001,
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The state of a Deployment's rollout."""

    seen: bool  # the Deployment controller has observed the latest spec; without that, the counts are of an older one
    wanted: int
    ready: int  # of any spec
    ready_of_latest: int  # a lower bound: so many of the ready ones run the latest spec
    complete: bool  # the Deployment controller has nothing left to do
    paused: bool
    failure: tuple[str, str] | None  # reason and message of ReplicaFailure
    stuck: str  # the message of an exceeded progress deadline, else ""

    @property
    def available(self) -> bool:
        return self.seen and self.ready_of_latest >= self.wanted


def rollout_of(deployment: Obj) -> Rollout:
    spec, status = deployment["spec"], deployment.get("status") or {}
    wanted = 1 if spec.get("replicas") is None else int(spec["replicas"])
    total, updated, ready = (int(status.get(key) or 0) for key in ("replicas", "updatedReplicas", "readyReplicas"))
    seen = int(status.get("observedGeneration") or 0) >= generation_of(deployment)
    # The status does not count ready pods by spec. In the worst case all old pods are among them.
    latest = max(0, ready - (total - updated)) if seen else 0
    failure = find_condition(deployment, "ReplicaFailure") if condition_is_true(deployment, "ReplicaFailure") else None
    progressing = find_condition(deployment, "Progressing") or {}
    stuck = progressing.get("reason") == "ProgressDeadlineExceeded"
    return Rollout(
        seen=seen,
        wanted=wanted,
        ready=ready,
        ready_of_latest=latest,
        complete=seen and total == updated == ready == wanted,
        paused=bool(spec.get("paused")),
        failure=(failure["reason"], failure.get("message") or "") if failure else None,
        stuck=str(progressing.get("message") or "The progress deadline was exceeded.") if stuck else "",
    )
