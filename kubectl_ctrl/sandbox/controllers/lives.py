"""The life of a pod on its node, as statuses: starting, running, failing, stopping.

Annotations of a pod change its life; all start with `sandbox.kubectl-ctrl.dev/`:

start-seconds  seconds until its containers run
run-seconds    seconds until its containers exit; without it they run for ever, except those of a Job
exit-code      the exit code of its containers; implies run-seconds 0. They restart as the restartPolicy says
fails          `image`: the images cannot be pulled; `ready`: it runs, and is never ready; `evicted`: its node evicts it
"""

from __future__ import annotations

import hashlib
import math

from kubectl_ctrl.model.objects import Obj, annotations_of, generation_of, uid_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.sandbox.controllers.pods import condition_of
from kubectl_ctrl.value import Value

PREFIX = "sandbox.kubectl-ctrl.dev/"
_KEPT = ("qosClass", "nominatedNodeName", "initContainerStatuses", "ephemeralContainerStatuses")
_TYPES = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class Plan(Value, kw_only=True):
    """How long a pod starts and runs, and how it ends."""

    start: float
    run: float | None  # None: for ever
    exit_code: int
    fails: str


def plan_of(pod: Obj, start: float, job_run: float) -> Plan:
    told = {key.removeprefix(PREFIX): value for key, value in annotations_of(pod).items() if key.startswith(PREFIX)}
    owner = controller_of(pod)
    run = job_run if owner is not None and owner["kind"] == "Job" else None
    run = _number(told.get("run-seconds"), 0.0 if "exit-code" in told and run is None else run)
    code = _number(told.get("exit-code"), 0.0) or 0.0
    waits = _number(told.get("start-seconds"), start)
    return Plan(start=start if waits is None else waits, run=run, exit_code=int(code), fails=told.get("fails", ""))


def _number(text: str | None, default: float | None) -> float | None:
    """An annotation that is not a number counts as absent."""
    try:
        number = float(text or "nan")
    except ValueError:
        return default
    return number if math.isfinite(number) else default


class Place(Value, kw_only=True):
    """Where and when a status is written."""

    stamp: str
    host_ip: str
    pod_ip: str


def main_containers(pod: Obj) -> list[Obj]:
    return list(pod["spec"].get("containers") or ())


def init_containers(pod: Obj) -> list[Obj]:
    return list(pod["spec"].get("initContainers") or ())


def is_sidecar(container: Obj) -> bool:
    """An init container that keeps running."""
    return bool(container.get("restartPolicy") == "Always")


# -- statuses


def starting(pod: Obj, place: Place, reason: str = "", message: str = "") -> Obj:
    """Accepted by the node, and waiting for its containers; `reason` is the one of a failed pull."""
    inits = init_containers(pod)
    usual = "PodInitializing" if inits else "ContainerCreating"
    waiting = {"reason": reason or usual, **({"message": message} if message else {})}
    mains = [_container(one, {"waiting": waiting if not inits else {"reason": usual}}) for one in main_containers(pod)]
    names = [one["name"] for one in main_containers(pod)]
    told = f"containers with unready status: [{' '.join(names)}]"
    unready = ("False", "ContainersNotReady", told)
    first = [one["name"] for one in inits]
    initialized = ("False", "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(first)}]")
    conditions = {
        "PodReadyToStartContainers": ("True" if reason else "False", "", ""),
        "Initialized": initialized if inits else ("True", "", ""),
        "Ready": unready,
        "ContainersReady": unready,
        "PodScheduled": ("True", "", ""),
    }
    status = _status(pod, place, "Pending", conditions)
    status["containerStatuses"] = mains
    if inits:
        status["initContainerStatuses"] = [_container(one, {"waiting": waiting}) for one in inits]
    return status


def running(pod: Obj, place: Place, *, ready: bool = True, restarted: bool = False) -> Obj:
    """All containers run; init containers are done."""
    state = {"running": {"startedAt": place.stamp}}
    mains = [_run(pod, one, state, place, ready=ready, restarted=restarted) for one in main_containers(pod)]
    status = _status(pod, place, "Running", _conditions_of(pod, "" if ready else "ContainersNotReady"))
    status["containerStatuses"] = mains
    if inits := init_containers(pod):
        status["initContainerStatuses"] = [_initialized(pod, one, place) for one in inits]
    return status


def _initialized(pod: Obj, container: Obj, place: Place) -> Obj:
    before = _before(pod, container)
    if before.get("ready"):
        return before
    if is_sidecar(container):
        return _run(pod, container, {"running": {"startedAt": place.stamp}}, place, ready=True)
    return {**_ended(pod, container, 0, place), "ready": True}


def backed_off(pod: Obj, place: Place, seconds: float) -> Obj:
    """Its containers have exited, and wait until they restart."""
    status = _status(pod, place, "Running", _conditions_of(pod, "ContainersNotReady"))
    statuses = []
    for container in main_containers(pod):
        before = _before(pod, container)
        message = f"back-off {int(seconds)}s restarting failed container={container['name']} pod={_title(pod)}"
        waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        last = before.get("state") if "terminated" in (before.get("state") or {}) else before.get("lastState")
        statuses.append({**before, "ready": False, "started": False, "state": waiting, "lastState": last or {}})
    return {**status, "containerStatuses": statuses}


def exited(pod: Obj, place: Place, code: int) -> Obj:
    """Its containers have exited and will restart."""
    status = _status(pod, place, "Running", _conditions_of(pod, "ContainersNotReady"))
    return {**status, "containerStatuses": [_ended(pod, one, code, place) for one in main_containers(pod)]}


def finished(pod: Obj, place: Place, code: int) -> Obj:
    """Its containers have exited for ever."""
    reason = "PodFailed" if code else "PodCompleted"
    conditions = {**_conditions_of(pod, reason), "PodReadyToStartContainers": ("False", "", "")}
    if not code:
        conditions["Initialized"] = ("True", reason, "")
    status = _status(pod, place, "Failed" if code else "Succeeded", conditions)
    status["containerStatuses"] = [_ended(pod, one, code, place) for one in main_containers(pod)]
    if inits := init_containers(pod):
        status["initContainerStatuses"] = [
            {**_ended(pod, one, 0, place), "ready": not is_sidecar(one)} for one in inits
        ]
    return status


def evicted(pod: Obj, stamp: str) -> Obj:
    """Its node lacks a resource."""
    message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 64Mi. "
    target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": stamp}
    target |= {"reason": "TerminationByKubelet", "message": message}
    before = pod.get("status") or {}
    others = [one for one in before.get("conditions") or () if one["type"] != "DisruptionTarget"]
    kept = {name: before[name] for name in ("qosClass", "hostIP", "hostIPs", "startTime") if name in before}
    return {**kept, "phase": "Failed", "reason": "Evicted", "message": message, "conditions": [*others, target]}


def _status(pod: Obj, place: Place, phase: str, conditions: dict[str, tuple[str, str, str]]) -> Obj:
    before = pod.get("status") or {}
    own = [_condition(pod, kind, conditions[kind], place.stamp) for kind in _TYPES]
    others = [one for one in before.get("conditions") or () if one["type"] not in _TYPES]
    status: Obj = {
        **{name: before[name] for name in _KEPT if name in before},
        "phase": phase,
        "conditions": [*own, *others],
        "hostIP": place.host_ip,
        "hostIPs": [{"ip": place.host_ip}],
        "startTime": before.get("startTime") or place.stamp,
    }
    if generation_of(pod):
        status["observedGeneration"] = generation_of(pod)
    if place.pod_ip:
        status |= {"podIP": place.pod_ip, "podIPs": [{"ip": place.pod_ip}]}
    return status


def _conditions_of(pod: Obj, reason: str) -> dict[str, tuple[str, str, str]]:
    """The conditions of a pod whose containers have started; `reason` is why they are not ready."""
    names = " ".join(one["name"] for one in main_containers(pod))
    message = f"containers with unready status: [{names}]" if reason == "ContainersNotReady" else ""
    containers = ("False", reason, message) if reason else ("True", "", "")
    return {
        "PodReadyToStartContainers": ("True", "", ""),
        "Initialized": ("True", "", ""),
        "Ready": containers if reason else _gated(pod),
        "ContainersReady": containers,
        "PodScheduled": ("True", "", ""),
    }


def _gated(pod: Obj) -> tuple[str, str, str]:
    """Ready, if the conditions of all readinessGates are true."""
    problems = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate["conditionType"]
        found = condition_of(pod, kind)
        if found is None:
            problems.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found["status"] != "True":
            problems.append(f'the status of pod readiness gate "{kind}" is not "True", but {found["status"]}')
    return ("False", "ReadinessGatesNotReady", ", ".join(problems)) if problems else ("True", "", "")


def _condition(pod: Obj, kind: str, told: tuple[str, str, str], stamp: str) -> Obj:
    value, reason, message = told
    before = condition_of(pod, kind)
    since = before["lastTransitionTime"] if before is not None and before["status"] == value else stamp
    condition = {"type": kind, "status": value, "lastTransitionTime": since, "reason": reason, "message": message}
    if generation_of(pod):
        condition["observedGeneration"] = generation_of(pod)
    return {name: part for name, part in condition.items() if part}


# -- containers


def _before(pod: Obj, container: Obj) -> Obj:
    """The last status of a container."""
    status = pod.get("status") or {}
    found = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return next((one for one in found if one["name"] == container["name"]), _container(container, {}))


def _container(container: Obj, state: Obj) -> Obj:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": False,
        "started": False,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }


def _run(pod: Obj, container: Obj, state: Obj, place: Place, *, ready: bool, restarted: bool = False) -> Obj:
    before = _before(pod, container)
    if not restarted and "running" in (before.get("state") or {}):
        return {**before, "ready": ready}
    count = int(before.get("restartCount") or 0) + restarted
    image = _full_image(str(container.get("image") or ""))
    digest = hashlib.sha256(image.encode()).hexdigest()
    last = before.get("state") if "terminated" in (before.get("state") or {}) else before.get("lastState")
    return {
        **before,
        "image": image,
        "imageID": image if "@" in image else f"{image.rpartition(':')[0]}@sha256:{digest}",
        "containerID": f"containerd://{_container_id(pod, container, count)}",
        "ready": ready,
        "started": True,
        "restartCount": count,
        "state": state,
        "lastState": last or {},
    }


def _ended(pod: Obj, container: Obj, code: int, place: Place) -> Obj:
    before = _before(pod, container)
    state = before.get("state") or {}
    if "terminated" in state and not is_sidecar(container):
        return before
    ran = _run(pod, container, {"running": {"startedAt": place.stamp}}, place, ready=False)
    terminated = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": (ran["state"].get("running") or {}).get("startedAt") or place.stamp,
        "finishedAt": place.stamp,
        "containerID": ran["containerID"],
    }
    return {**ran, "ready": False, "started": False, "state": {"terminated": terminated}}


def _full_image(image: str) -> str:
    """The name that a container runtime reports: with registry and tag."""
    head, slash, _ = image.partition("/")
    if not slash:
        image = f"docker.io/library/{image}"
    elif not ("." in head or ":" in head or head == "localhost"):
        image = f"docker.io/{image}"
    return image if "@" in image or ":" in image.rpartition("/")[2] else f"{image}:latest"


def _container_id(pod: Obj, container: Obj, count: int) -> str:
    return hashlib.sha256(f"{uid_of(pod)}/{container['name']}/{count}".encode()).hexdigest()


def _title(pod: Obj) -> str:
    meta = pod["metadata"]
    return f"{meta['name']}_{meta.get('namespace', '')}({uid_of(pod)})"
