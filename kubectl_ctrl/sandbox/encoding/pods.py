"""The cells of a pod: its status is that of the container which matters most."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.encoding.ages import seconds_of, since
from kubectl_ctrl.sandbox.encoding.facts import age, at
from kubectl_ctrl.value import Struct


class _Counts(Struct):
    """The counts of a pod's containers."""

    reason: str
    total: int
    ready: int = 0
    restarts: int = 0
    restarted: str = ""  # the last time

    def restart(self, container: Obj) -> None:
        self.restarts += container.get("restartCount", 0)
        finished = at(container, "lastState.terminated.finishedAt")
        if finished and (not self.restarted or seconds_of(finished) > seconds_of(self.restarted)):
            self.restarted = finished


def cells(pod: Obj, now: float) -> list[Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {one["name"] for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"}
    conditions = status.get("conditions") or []
    reason = str(status.get("reason") or status.get("phase") or "")
    if any(one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated" for one in conditions):
        reason = "SchedulingGated"
    counts = _Counts(reason, len(spec.get("containers") or ()) + len(sidecars))
    lasting = _Counts("", 0)  # the restarts of sidecars, which count after initialization
    if not _initializing(pod, counts, lasting, sidecars) or _is_true(conditions, "Initialized", first=True):
        counts.restarts, counts.restarted = lasting.restarts, lasting.restarted
        _running(status, counts)
    if at(pod, "metadata.deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            counts.reason = "Unknown"
        elif status.get("phase") not in ("Failed", "Succeeded"):
            counts.reason = "Terminating"
    restarts = str(counts.restarts)
    if counts.restarts and counts.restarted:
        restarts = f"{counts.restarts} ({since(counts.restarted, now)} ago)"
    name = str(at(pod, "metadata.name") or "")
    return [name, f"{counts.ready}/{counts.total}", counts.reason, restarts, age(pod, now), *_wide(spec, status)]


def _initializing(pod: Obj, counts: _Counts, lasting: _Counts, sidecars: set[str]) -> bool:
    """Whether an init container has not finished; it gives the reason."""
    for place, container in enumerate(at(pod, "status.initContainerStatuses") or ()):
        counts.restart(container)
        if sidecar := container.get("name") in sidecars:
            lasting.restart(container)
        ended, waiting = at(container, "state.terminated"), at(container, "state.waiting.reason")
        if ended is not None and not ended.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            counts.ready += bool(container.get("ready"))
            continue
        if ended is not None:
            counts.reason = f"Init:{_exit(ended)}"
        elif waiting and waiting != "PodInitializing":
            counts.reason = f"Init:{waiting}"
        else:
            counts.reason = f"Init:{place}/{len(at(pod, 'spec.initContainers') or ())}"
        return True
    return False


def _running(status: Obj, counts: _Counts) -> None:
    running, failure = False, ""
    for container in reversed(status.get("containerStatuses") or ()):
        counts.restart(container)
        state = container.get("state") or {}
        ended = state.get("terminated")
        if waiting := at(state, "waiting.reason"):
            counts.reason = waiting
        elif ended is not None:
            counts.reason = _exit(ended)
            failure = counts.reason if ended.get("exitCode") else failure
        elif container.get("ready") and state.get("running") is not None:
            running = True
            counts.ready += 1
    if counts.reason == "Completed":
        if running and _is_true(status.get("conditions") or [], "Ready"):
            counts.reason = "Running"
        else:
            counts.reason = failure or ("NotReady" if running else "Completed")


def _exit(ended: Obj) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _is_true(conditions: list[Obj], kind: str, *, first: bool = False) -> bool:
    found = [one.get("status") == "True" for one in conditions if one.get("type") == kind]
    return any(found[:1] if first else found)


def _wide(spec: Obj, status: Obj) -> list[str]:
    address = next((one.get("ip", "") for one in status.get("podIPs") or ()), "")
    gates = spec.get("readinessGates") or []
    conditions = status.get("conditions") or []
    true = sum(_is_true(conditions, gate.get("conditionType", ""), first=True) for gate in gates)
    named = [address, spec.get("nodeName"), status.get("nominatedNodeName")]
    return [*(str(one or "<none>") for one in named), f"{true}/{len(gates)}" if gates else "<none>"]
