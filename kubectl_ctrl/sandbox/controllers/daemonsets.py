"""The DaemonSet controller: one pod on each node that admits it."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl.model.objects import Key, Obj, annotations_of, generation_of, is_deleting, key_of, labels_of, name_of
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess
from kubectl_ctrl.sandbox.controllers.history import current_revision, forget_revisions, revisions_of
from kubectl_ctrl.sandbox.controllers.placement import fits_affinity, untolerated
from kubectl_ctrl.sandbox.controllers.pods import is_ready, phase_of
from kubectl_ctrl.sandbox.controllers.resources import CONTROLLER_REVISIONS, DAEMONSETS, NODES
from kubectl_ctrl.sandbox.controllers.workloads import (
    WorkloadController,
    age_order,
    is_available,
    is_finished,
    next_availability,
    pod_of,
    scaled,
)
from kubectl_ctrl.sandbox.storage import StoredChange

_HASH = "controller-revision-hash"
_GENERATION = "pod-template-generation"
_GENERATIONS = "deprecated.daemonset.template.generation"
_NODE = "node.kubernetes.io/"
# The trouble of a node that does not concern its daemons.
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_BACKOFF, _LONGEST_BACKOFF = 1.0, 15 * 60.0  # seconds between deletions of failed pods on one node


class DaemonSets(WorkloadController):
    resource = DAEMONSETS
    source = "daemonset-controller"
    owned = (PODS, CONTROLLER_REVISIONS)

    def __init__(self, cluster: ClusterAccess) -> None:
        super().__init__(cluster)
        self.backoffs: dict[tuple[Key, str], tuple[float, float]] = {}  # DaemonSet and node: the last time and delay

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table == NODES.full_name:
            return map(key_of, self.cluster.all(DAEMONSETS)) if _is_other_place(change) else ()
        return super().concerns(table, change)

    def sync(self, key: Key) -> float | None:
        found = self.cluster.get(DAEMONSETS, key)
        if found is None or is_deleting(found) or not found["spec"].get("selector"):
            return None
        known = revisions_of(self.cluster, found)
        revision = current_revision(self.cluster, found, known, _HASH)
        round_ = _Round(self, found, labels_of(revision)[_HASH])
        try:
            round_.act()
        finally:  # the status shows what is missing after a refusal
            self.write_status(found, round_.status())
        pods = self.claim(found)
        live = {labels_of(pod).get(_HASH) for pod in pods}
        old = [one for one in known if name_of(one) != name_of(revision)]
        forget_revisions(self.cluster, found, old, [name_of(one) for one in old if labels_of(one)[_HASH] in live])
        waits = [next_availability(pods, round_.least, self.cluster.clock.now()), round_.again]
        return min((wait for wait in waits if wait is not None), default=None)


class _Round:
    """One sync of one DaemonSet."""

    def __init__(self, controller: DaemonSets, found: Obj, digest: str) -> None:
        self.set = found
        self.least = int(found["spec"].get("minReadySeconds") or 0)
        self.again: float | None = None
        self._controller = controller
        self._cluster = controller.cluster
        self._hash = digest
        self._template = _template(found)
        self._nodes = list(self._cluster.all(NODES))
        self._may_run = {name_of(node): self._admits(node, ("NoExecute", "NoSchedule")) for node in self._nodes}
        self._may_stay = {name_of(node): self._admits(node, ("NoExecute",)) for node in self._nodes}
        wanted = sum(self._may_run.values())
        strategy = found["spec"]["updateStrategy"]
        # Nobody has checked those of another strategy.
        rolling = (strategy.get("rollingUpdate") or {}) if strategy["type"] == "RollingUpdate" else {}
        self._surge = scaled(rolling.get("maxSurge"), wanted, up=True)
        self._unavailable = scaled(rolling.get("maxUnavailable", 1), wanted, up=True) or (0 if self._surge else 1)

    def _admits(self, node: Obj, effects: tuple[str, ...]) -> bool:
        fixed = self._template["spec"].get("nodeName")
        spec = self._template["spec"]
        return fixed in (None, "", name_of(node)) and fits_affinity(spec, node) and not untolerated(spec, node, effects)

    def _by_node(self) -> dict[str, list[Obj]]:
        """The pods of each node, oldest first, without those that have ended and are being deleted."""
        found: dict[str, list[Obj]] = {}
        for pod in sorted(
            self._controller.claim(self.set), key=lambda pod: (not pod["spec"].get("nodeName"), *age_order(pod))
        ):
            if (node := _node_of(pod)) and not (is_finished(pod) and is_deleting(pod)):
                found.setdefault(node, []).append(pod)
        return found

    def act(self) -> None:
        self._manage()
        if (self.set["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate":
            self._roll()

    def _manage(self) -> None:
        """Create the missing pods and delete the superfluous ones."""
        by_node = self._by_node()
        for node in self._may_run:
            pods = by_node.get(node, [])
            if self._may_run[node] and not pods:
                self._create(node)
            elif self._may_stay[node]:
                self._keep_one(node, pods)
            else:
                self._delete(pod for pod in pods if not is_deleting(pod))
        for node in by_node.keys() - self._may_run.keys():
            self._delete(pod for pod in by_node[node] if not pod["spec"].get("nodeName"))

    def _keep_one(self, node: str, pods: list[Obj]) -> None:
        here = [pod for pod in pods if not is_deleting(pod)]
        for pod in filter(is_finished, here):
            self._replace(node, pod)
        running = [pod for pod in here if not is_finished(pod)]
        if not self._surge:
            self._delete(running[1:])
        elif not running and self._may_run[node]:
            self._create(node)
        elif len(running) > 1:
            self._thin(running)

    def _thin(self, running: list[Obj]) -> None:
        """During a surge: the oldest new pod, and the oldest old one while the new one is not available."""
        new = [pod for pod in running if self._is_new(pod)]
        old = [pod for pod in running if not self._is_new(pod)]
        self._delete([*new[1:], *old[1:]])
        if new and old and (not is_ready(old[0]) or self._is_available(new[0])):
            self._delete(old[:1])

    def _replace(self, node: str, pod: Obj) -> None:
        """Delete a pod that has ended, but a failed one only after a growing delay."""
        failed = phase_of(pod) == "Failed"
        title = f"{pod['metadata']['namespace']}/{name_of(pod)} on node {node}"
        if not failed:
            self._controller.event(
                self.set, "SucceededDaemonPod", f"Found succeeded daemon pod {title}, will try to delete it"
            )
        elif self._backs_off(node):
            return
        else:
            message = f"Found failed daemon pod {title}, will try to kill it"
            self._controller.event(self.set, "FailedDaemonPod", message, warning=True)
        self._delete([pod])

    def _backs_off(self, node: str) -> bool:
        place, now = (key_of(self.set), node), self._cluster.clock.elapsed()
        last, delay = self._controller.backoffs.get(place, (now, 0.0))
        if now < last + delay:
            left = last + delay - now
            self.again = left if self.again is None else min(self.again, left)
            return True
        grown = _BACKOFF if now - last > 2 * _LONGEST_BACKOFF else min(max(_BACKOFF, 2 * delay), _LONGEST_BACKOFF)
        self._controller.backoffs[place] = (now, grown)
        return False

    def _roll(self) -> None:
        """Replace old pods, as many at once as the strategy allows."""
        by_node = {node: [pod for pod in pods if not is_deleting(pod)] for node, pods in self._by_node().items()}
        for node, runs in self._may_run.items():
            if runs:
                by_node.setdefault(node, [])
        if self._surge:
            self._roll_with_surge(by_node)
        else:
            self._roll_in_place(by_node)

    def _roll_in_place(self, by_node: dict[str, list[Obj]]) -> None:
        """An old pod that is not available goes at once; the others while few enough are unavailable."""
        missing = 0
        broken: list[Obj] = []
        candidates: list[Obj] = []
        for pods in by_node.values():
            if len(pods) == 1 and not self._is_new(pods[0]):
                (candidates if self._is_available(pods[0]) else broken).append(pods[0])
            elif len(pods) != 1 or not self._is_available(pods[0]):
                missing += 1
        left = max(0, self._unavailable - missing - len(broken))
        self._delete([*broken, *candidates[:left]])

    def _roll_with_surge(self, by_node: dict[str, list[Obj]]) -> None:
        surging = available = 0
        allowed: list[Obj] = []
        sunset: list[Obj] = []
        candidates: list[str] = []
        for node, pods in by_node.items():
            new = [pod for pod in pods if self._is_new(pod)]
            old = [pod for pod in pods if not self._is_new(pod)]
            if len(new) > 1 or len(old) > 1:
                surging += 1
                continue
            available += any(self._is_available(pod) for pod in (old or new))
            if old and new:
                surging += not self._is_available(new[0])
                self._delete(old if self._is_available(new[0]) else [])
            elif old and not self._may_run.get(node):
                (sunset if self._is_available(old[0]) else allowed).append(old[0])
            elif old:
                self._surge_here(node, old[0], candidates, surging)
        self._delete([*allowed, *sunset[: max(0, available - sum(self._may_run.values()))]])
        for node in candidates[: max(0, self._surge - surging)]:
            self._create(node)

    def _surge_here(self, node: str, old: Obj, candidates: list[str], surging: int) -> None:
        if not self._is_available(old):
            self._create(node)
        elif surging < self._surge:
            candidates.append(node)

    def _create(self, node: str) -> None:
        labels = {**labels_of(self._template), _HASH: self._hash}
        if generation := annotations_of(self.set).get(_GENERATIONS):
            labels[_GENERATION] = generation
        pod = pod_of(self.set, self._template, generateName=f"{name_of(self.set)}-", labels=labels)
        pod["spec"]["affinity"] = _bound(pod["spec"].get("affinity") or {}, node)
        self._controller.create_pod(self.set, pod)

    def _delete(self, pods: Iterable[Obj]) -> None:
        for pod in list(pods):
            if self._cluster.get(PODS, key_of(pod)) is not None:
                self._controller.delete_pod(self.set, pod)

    def _is_new(self, pod: Obj) -> bool:
        generation = annotations_of(self.set).get(_GENERATIONS)
        labels = labels_of(pod)
        return labels.get(_HASH) == self._hash or (generation is not None and labels.get(_GENERATION) == generation)

    def _is_available(self, pod: Obj) -> bool:
        return is_available(pod, self.least, self._cluster.clock.now())

    def status(self) -> Obj:
        by_node = self._by_node()
        wanted = [node for node, runs in self._may_run.items() if runs]
        first = [by_node[node][0] for node in wanted if by_node.get(node)]
        ready = [pod for pod in first if is_ready(pod)]
        available = sum(map(self._is_available, ready))
        before = self.set.get("status") or {}
        optional = {
            "updatedNumberScheduled": sum(map(self._is_new, first)),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
        }
        return {
            **{name: before[name] for name in ("conditions", "collisionCount") if name in before},
            "currentNumberScheduled": len(first),
            "numberMisscheduled": sum(not self._may_run[node] for node in by_node if node in self._may_run),
            "desiredNumberScheduled": len(wanted),
            "numberReady": len(ready),
            "observedGeneration": generation_of(self.set),
            **{name: count for name, count in optional.items() if count},
        }


def _is_other_place(change: StoredChange) -> bool:
    """Whether a node appeared, went, or has other labels or taints."""
    if change.old is None or change.new is None:
        return True
    taints = [(node.get("spec") or {}).get("taints") for node in (change.old, change.new)]
    return not same(labels_of(change.old), labels_of(change.new)) or not same(*taints)


def _template(found: Obj) -> Obj:
    """The template with the tolerations of a daemon."""
    template: Obj = found["spec"]["template"]
    spec = template["spec"]
    names = (*_TOLERATED, *((("network-unavailable", "NoSchedule"),) if spec.get("hostNetwork") else ()))
    added = [{"key": f"{_NODE}{name}", "operator": "Exists", "effect": effect} for name, effect in names]
    places = {(one["key"], one["effect"]) for one in added}
    given = [one for one in spec.get("tolerations") or () if (one.get("key"), one.get("effect")) not in places]
    return {**template, "spec": {**spec, "tolerations": [*given, *added]}}


def _bound(affinity: Obj, node: str) -> Obj:
    """The affinity with one required node, in the form in which the scheduler expects it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    before = affinity.get("nodeAffinity") or {}
    return {**affinity, "nodeAffinity": {**before, "requiredDuringSchedulingIgnoredDuringExecution": required}}


def _node_of(pod: Obj) -> str:
    """The node that it runs on, or the one that its affinity requires."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name" and field["operator"] == "In" and len(field["values"]) == 1:
                return str(field["values"][0])
    return ""
