"""The kubelets of all nodes: they start, run, restart and stop the containers of pods, which do not exist.

What a pod does next follows from its status and its annotations (see `lives`). Only the times of steps to come are kept
here; after a restart of the server they begin again.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, name_of, uid_of
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.controllers import lives, pods
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess, Controller
from kubectl_ctrl.sandbox.controllers.lives import Place, Plan
from kubectl_ctrl.sandbox.controllers.nodes import POD_NETWORK
from kubectl_ctrl.sandbox.controllers.resources import NODES
from kubectl_ctrl.sandbox.storage import StoredChange
from kubectl_ctrl.value import Struct, Value

_FIRST_BACK_OFF = 10.0
_LAST_BACK_OFF = 300.0
_PULL_AGAIN = 10.0  # seconds after which a failed pull is reported as a back-off, or a sandbox is tried again


class KubeletSettings(Value, kw_only=True):
    """Seconds that steps of every pod take, unless its annotations have others."""

    start: float = 0.0
    stop: float = 0.0  # at most the grace period
    job_run: float = 0.0  # how long the containers of a Job run


class _Step(Struct):
    """The current step of one pod, and the time when it ends."""

    name: str
    until: float


class Kubelet(Controller):
    component = "kubelet"

    def __init__(self, cluster: ClusterAccess, settings: KubeletSettings) -> None:
        super().__init__(cluster)
        self._settings = settings
        self._steps: dict[str, _Step] = {}  # by UID of the pod
        self._ips = _Addresses()

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table != PODS.full_name:
            return ()
        if change.old is not None and (change.new is None or uid_of(change.new) != uid_of(change.old)):
            self._steps.pop(uid_of(change.old), None)
            self._ips.free(uid_of(change.old))
        if change.new is not None and not change.new["spec"].get("hostNetwork"):
            self._ips.keep(uid_of(change.new), (change.new.get("status") or {}).get("podIP") or "")
        return [key_of(change.new)] if change.new is not None and change.new["spec"].get("nodeName") else ()

    def sync(self, key: Key) -> float | None:
        pod = self.cluster.get(PODS, key)
        node = self.cluster.get(NODES, Key("", pod["spec"].get("nodeName") or "")) if pod is not None else None
        if pod is None or node is None:
            return None
        place = self._place(pod, node)
        if is_deleting(pod):
            return self._stop(pod, place)
        if pods.phase_of(pod) in ("Succeeded", "Failed"):
            return None
        return self._live(pod, place, lives.plan_of(pod, self._settings.start, self._settings.job_run))

    def _place(self, pod: Obj, node: Obj) -> Place:
        addresses = (node.get("status") or {}).get("addresses") or ()
        host = next((one["address"] for one in addresses if one["type"] == "InternalIP"), "")
        return Place(stamp=self.cluster.now, host_ip=host, pod_ip=(pod.get("status") or {}).get("podIP") or "")

    def _with_ip(self, pod: Obj, place: Place) -> Place:
        """A pod gets its address when its containers start."""
        if place.pod_ip:
            return place
        if pod["spec"].get("hostNetwork"):
            return Place(stamp=place.stamp, host_ip=place.host_ip, pod_ip=place.host_ip)
        node = self.cluster.get(NODES, Key("", pod["spec"]["nodeName"])) or {}
        network = (node.get("spec") or {}).get("podCIDR") or POD_NETWORK
        return Place(stamp=place.stamp, host_ip=place.host_ip, pod_ip=self._ips.take(uid_of(pod), network))

    # -- a life

    def _live(self, pod: Obj, place: Place, plan: Plan) -> float | None:
        if plan.fails == "evicted":
            self._event(pod, "Evicted", lives.evicted(pod, place.stamp)["message"], kind="Warning")
            self._write(pod, lives.evicted(pod, place.stamp))
            return None
        if "containerID" not in _first_container(pod):
            return self._start(pod, place, plan)
        state = _first_container(pod)["state"]
        if "running" in state:
            return self._run(pod, place, plan)
        return self._restart(pod, place, plan)

    def _start(self, pod: Obj, place: Place, plan: Plan) -> float | None:
        wait = 0.0 if self._step(pod) == "pull" else self._wait(pod, "start", plan.start)
        if wait:
            self._write(pod, lives.starting(pod, place))
            return wait
        if plan.fails == "image":
            return self._fail_to_pull(pod, self._with_ip(pod, place))
        located = self._with_ip(pod, place)
        if not located.pod_ip:
            words = "Failed to create pod sandbox: no IP addresses available in range set"
            self._event(pod, "FailedCreatePodSandBox", words, kind="Warning")
            self._write(pod, lives.starting(pod, place))
            return _PULL_AGAIN
        for container in [*lives.init_containers(pod), *lives.main_containers(pod)]:
            self._started(pod, container)
        self._write(pod, lives.running(pod, located, ready=_becomes_ready(plan)))
        return None

    def _fail_to_pull(self, pod: Obj, place: Place) -> float | None:
        inits = lives.init_containers(pod)
        container = (inits or lives.main_containers(pod))[0]
        image = container.get("image", "")
        known = _waiting_reason(pod)
        if wait := self._wait(pod, "pull", _PULL_AGAIN):
            message = f'failed to pull and unpack image "{image}": not found'
            if known != "ErrImagePull":
                self._event(pod, "Pulling", f'Pulling image "{image}"', container)
                self._event(pod, "Failed", f'Failed to pull image "{image}": {message}', container, kind="Warning")
                self._event(pod, "Failed", "Error: ErrImagePull", container, kind="Warning")
            self._write(pod, lives.starting(pod, place, "ErrImagePull", message))
            return wait
        message = f'Back-off pulling image "{image}"'
        if known != "ImagePullBackOff":
            self._event(pod, "BackOff", message, container)
            self._event(pod, "Failed", "Error: ImagePullBackOff", container, kind="Warning")
        self._write(pod, lives.starting(pod, place, "ImagePullBackOff", message))
        return None

    def _run(self, pod: Obj, place: Place, plan: Plan) -> float | None:
        ready = _becomes_ready(plan)
        if plan.run is None:
            self._write(pod, lives.running(pod, place, ready=ready))
            return None
        if wait := self._wait(pod, f"run {pods.restarts(pod)}", plan.run):
            self._write(pod, lives.running(pod, place, ready=ready))
            return wait
        policy = pod["spec"].get("restartPolicy", "Always")
        if policy == "Never" or (policy == "OnFailure" and not plan.exit_code):
            self._write(pod, lives.finished(pod, place, plan.exit_code))
        else:
            self._write(pod, lives.exited(pod, place, plan.exit_code))
        return None

    def _restart(self, pod: Obj, place: Place, plan: Plan) -> float | None:
        """The first restart comes at once, each later one after twice the time."""
        count = pods.restarts(pod)
        seconds = min(_FIRST_BACK_OFF * 2.0 ** (count - 1), _LAST_BACK_OFF) if count else 0.0
        wait = self._wait(pod, f"restart {count}", seconds)
        if wait:
            if _waiting_reason(pod) != "CrashLoopBackOff":
                container = lives.main_containers(pod)[0]
                name = f"{name_of(pod)}_{key_of(pod).namespace}({uid_of(pod)})"
                message = f"Back-off restarting failed container {container['name']} in pod {name}"
                self._event(pod, "BackOff", message, container, kind="Warning")
            self._write(pod, lives.backed_off(pod, place, seconds))
            return wait
        for container in lives.main_containers(pod):
            self._started(pod, container)
        self._write(pod, lives.running(pod, place, ready=_becomes_ready(plan), restarted=True))
        return None

    def _stop(self, pod: Obj, place: Place) -> float | None:
        """Stop the containers within the grace period, then remove the pod."""
        grace = int(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        runs = "running" in _first_container(pod).get("state", {})
        if runs and self._step(pod) != "stop":
            for container in lives.main_containers(pod):
                self._event(pod, "Killing", f"Stopping container {container['name']}", container)
        if wait := self._wait(pod, "stop", min(self._settings.stop, grace)):
            return wait
        if runs:
            self._write(pod, lives.finished(pod, place, 0))
        self.cluster.delete(PODS, pod, gracePeriodSeconds=0, preconditions={"uid": uid_of(pod)})
        return None

    # -- helpers

    def _step(self, pod: Obj) -> str:
        step = self._steps.get(uid_of(pod))
        return "" if step is None else step.name

    def _wait(self, pod: Obj, name: str, seconds: float) -> float:
        """The seconds left of a step, which begins now unless it has begun already."""
        now = self.cluster.clock.elapsed()
        if self._step(pod) != name:
            self._steps[uid_of(pod)] = _Step(name, now + seconds)
        left = self._steps[uid_of(pod)].until - now
        return left if left > 1e-6 else 0.0

    def _write(self, pod: Obj, status: Obj) -> None:
        self.cluster.set_status(PODS, pod, status)

    def _started(self, pod: Obj, container: Obj) -> None:
        image = container.get("image", "")
        message = f'Container image "{image}" already present on machine and can be accessed by the pod'
        self._event(pod, "Pulled", message, container)
        self._event(pod, "Created", "Container created", container)
        self._event(pod, "Started", "Container started", container)

    def _event(
        self, pod: Obj, reason: str, message: str, container: Obj | None = None, *, kind: str = "Normal"
    ) -> None:
        inits = lives.init_containers(pod)
        field = "initContainers" if container in inits else "containers"
        path = f"spec.{field}{{{container['name']}}}" if container is not None else ""
        source = f"kubelet@{pod['spec']['nodeName']}"
        self.cluster.event(pod, reason, message, kind=kind, source=source, field_path=path)


class _Addresses:
    """The IP addresses of pods, each used by one pod at a time."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}  # by UID of the pod
        self._used: set[str] = set()
        self._free: dict[str, Iterator[str]] = {}  # those of each network after the one that was given last

    def take(self, uid: str, network: str) -> str:
        """The address of a pod; empty if all of the network are in use."""
        if uid not in self._of and not self.keep(uid, next(self._free.get(network, iter(())), "")):
            self._free[network] = (one for one in _hosts(network) if one not in self._used)
            self.keep(uid, next(self._free[network], ""))
        return self._of.get(uid, "")

    def keep(self, uid: str, address: str) -> str:
        """The pod has this address, if it is one, and no other."""
        if address:
            self.free(uid)
            self._of[uid] = address
            self._used.add(address)
        return address

    def free(self, uid: str) -> None:
        self._used.discard(self._of.pop(uid, ""))


def _hosts(network: str) -> Iterator[str]:
    """The first is that of the network's bridge; no address if it is not a network."""
    with suppress(ValueError):
        yield from map(str, islice(ipaddress.ip_network(network).hosts(), 1, None))


def _first_container(pod: Obj) -> Obj:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return dict(statuses[0])


def _waiting_reason(pod: Obj) -> str:
    status = pod.get("status") or {}
    found = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    reasons = [((one.get("state") or {}).get("waiting") or {}).get("reason", "") for one in found]
    return str(next((reason for reason in reasons if reason), ""))


def _becomes_ready(plan: Plan) -> bool:
    return plan.fails != "ready"
