"""The Deployment that a Memcached asks for, and what a Deployment says of its pods. Pure: objects in, values out."""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_ctrl import Obj, condition_is_true, find_condition, generation_of, name_of, namespace_of

# On every pod and ReplicaSet of ours; also what their caches select by.
CR_LABEL = "memcached_cr"

_IMAGE = "memcached:1.4.36-alpine"
# The tutorial writes `-m=64`, which its image reads as 64 megabytes, and one of 1.6 as none, and ends.
_COMMAND = ("memcached", "-m", "64", "-o", "modern", "-v")
_PORT = 11211  # memcached's own, when it is told none


def desired(memcached: Obj, live: Obj | None) -> Obj:
    """The part of the Deployment that is ours to say; `live` is the one of that name, if there is one."""
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
    """What tells this Memcached's pods from all others."""
    return {"app": "memcached", CR_LABEL: name_of(memcached)}


def kept_selector(memcached: Obj, live: Obj | None) -> Obj | None:
    """The selector that the Deployment has, where we would choose another: it cannot change once it is set."""
    selector: Obj | None = live["spec"]["selector"] if live is not None else None
    return None if selector == {"matchLabels": own_labels(memcached)} else selector


def _selection(memcached: Obj, live: Obj | None) -> tuple[Obj, dict[str, str]]:
    """The selector, and pod labels. Labels that only an expression of it asks for are somebody else's, and stay."""
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
    """How far a Deployment has come."""

    seen: bool  # its controller has seen the latest spec; otherwise nothing is known of that
    wanted: int
    ready: int  # of any spec
    ready_of_latest: int  # at least so many of the ready ones run the latest spec
    complete: bool  # its controller has nothing more to do
    paused: bool
    failure: tuple[str, str] | None  # reason and message of what keeps pods from being made
    stuck: str  # its own words when it takes longer than its deadline, else ""

    @property
    def available(self) -> bool:
        return self.seen and self.ready_of_latest >= self.wanted


def rollout_of(deployment: Obj) -> Rollout:
    spec, status = deployment["spec"], deployment.get("status") or {}
    wanted = 1 if spec.get("replicas") is None else int(spec["replicas"])
    total, updated, ready = (int(status.get(key) or 0) for key in ("replicas", "updatedReplicas", "readyReplicas"))
    seen = int(status.get("observedGeneration") or 0) >= generation_of(deployment)
    # Which pods are ready is not told by spec; at worst all of the old ones are.
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
        stuck=str(progressing.get("message") or "It takes too long.") if stuck else "",
    )
