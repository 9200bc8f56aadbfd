"""The StatefulSet controller: pods with an ordinal, created, updated and deleted in order, and their volume claims."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_ctrl.model.objects import Key, Obj, generation_of, is_deleting, labels_of, name_of, namespace_of, uid_of
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.resources import PODS, STATEFULSETS
from kubectl_ctrl.model.selectors import from_label_selector
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess
from kubectl_ctrl.sandbox.controllers.history import (
    current_revision,
    forget_revisions,
    revisions_of,
    template_of,
)
from kubectl_ctrl.sandbox.controllers.pods import is_ready, phase_of, refusal_message
from kubectl_ctrl.sandbox.controllers.resources import CLAIMS, CONTROLLER_REVISIONS
from kubectl_ctrl.sandbox.controllers.workloads import (
    WorkloadController,
    is_available,
    is_finished,
    next_availability,
    pod_of,
)

_NAME = "statefulset.kubernetes.io/pod-name"
_INDEX = "apps.kubernetes.io/pod-index"
_REVISION = "controller-revision-hash"
_HASH = "controller.kubernetes.io/hash"


class StatefulSets(WorkloadController):
    resource = STATEFULSETS
    source = "statefulset-controller"
    owned = (PODS, CONTROLLER_REVISIONS)

    def sync(self, key: Key) -> float | None:
        found = self.cluster.get(STATEFULSETS, key)
        if found is None:
            return None
        known = revisions_of(self.cluster, found)
        update = current_revision(self.cluster, found, known, _HASH)
        named = (found.get("status") or {}).get("currentRevision")
        current = next((one for one in known if name_of(one) == named), update)
        round_ = _Round(self, found, current, update)
        again = None
        try:
            again = None if is_deleting(found) else round_.act()
        finally:  # the status shows what is missing after a refusal
            later = self._report(round_, known)
        return later or again

    def _report(self, round_: _Round, known: list[Obj]) -> float | None:
        pods = _members(self.cluster, round_.set)
        self.write_status(round_.set, round_.status(pods))
        live = [
            name_of(round_.current),
            name_of(round_.update),
            *(labels_of(pod).get(_REVISION, "") for pod in pods.values()),
        ]
        forget_revisions(self.cluster, round_.set, known, live)
        return next_availability(pods.values(), round_.least, self.cluster.clock.now())


class _Round:
    """One sync of one StatefulSet."""

    def __init__(self, controller: StatefulSets, found: Obj, current: Obj, update: Obj) -> None:
        self.set = found
        self.current = current
        self.update = update
        spec = found["spec"]
        self.least = int(spec.get("minReadySeconds") or 0)
        self._controller = controller
        self._cluster = controller.cluster
        self._in_order = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
        self._start = int((spec.get("ordinals") or {}).get("start") or 0)
        self._count = int(spec.get("replicas", 1))
        strategy = spec.get("updateStrategy") or {}
        self._rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
        self._partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        self._claims = _Claims(controller, found, range(self._start, self._start + self._count))

    def act(self) -> float | None:
        """Take the steps that the order allows; seconds until a retry, if a former claim is in the way."""
        pods = _members(self._cluster, self.set)
        first = self._first_unavailable(pods)
        for ordinal in range(self._start, self._start + self._count):
            if not self._keep(pods.get(ordinal), ordinal):
                return 1.0 if self._claims.stale(ordinal) else None
        condemned = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if not self._wanted(ordinal)]
        for pod in condemned:
            self._claims.own(pod)
        if self._drop(condemned, first) and self._rolling:
            self._roll(pods)
        return None

    def _wanted(self, ordinal: int) -> bool:
        return self._start <= ordinal < self._start + self._count

    def _first_unavailable(self, pods: Pods) -> Obj | None:
        """The first pod that is not available, wanted ones before others; a missing one counts."""
        for ordinal in range(self._start, self._start + self._count):
            if ordinal not in pods or not self._is_available(pods[ordinal]):
                return pods.get(ordinal)
        return next(
            (pods[one] for one in sorted(pods) if not self._wanted(one) and not self._is_available(pods[one])), None
        )

    def _keep(self, pod: Obj | None, ordinal: int) -> bool:
        """Bring a wanted pod a step further; whether the next one may be considered."""
        if pod is None:
            if self._claims.stale(ordinal):
                return False
            self._create(ordinal)
            return not self._in_order
        if is_finished(pod):
            if not is_deleting(pod):
                self._delete(pod)
            return not self._in_order
        if phase_of(pod) == "Pending" and not is_deleting(pod):
            self._claims.create(ordinal)
        if self._in_order and not self._is_available(pod):
            return False
        self._claims.own(pod)
        return True

    def _is_available(self, pod: Obj) -> bool:
        running = phase_of(pod) == "Running" and not is_deleting(pod)
        return running and is_available(pod, self.least, self._cluster.clock.now())

    def _drop(self, condemned: list[Obj], first: Obj | None) -> bool:
        """Delete pods that are not wanted, one at a time if in order; whether nothing is left to do."""
        for pod in condemned:
            if is_deleting(pod):
                if self._in_order:
                    return False
                continue
            if self._in_order and not self._is_available(pod) and pod is not first:
                return False
            self._delete(pod)
            if self._in_order:
                return False
        return True

    def _roll(self, pods: Pods) -> None:
        """Delete the last pod of an old revision, once all after it are available."""
        for ordinal in range(self._start + self._count - 1, self._start + self._partition - 1, -1):
            pod = pods.get(ordinal)
            if pod is None:
                return
            if labels_of(pod).get(_REVISION) != name_of(self.update) and not is_deleting(pod):
                self._delete(pod)
                return
            if not self._is_available(pod):
                return

    def _create(self, ordinal: int) -> None:
        revision = self.current if self._stays_old(ordinal) else self.update
        template = template_of(revision)
        name = f"{name_of(self.set)}-{ordinal}"
        own = {_NAME: name, _INDEX: str(ordinal), _REVISION: name_of(revision)}
        pod = pod_of(self.set, template, name=name, labels={**labels_of(template), **own})
        subdomain = self.set["spec"].get("serviceName") or ""
        pod["spec"] |= {"hostname": name, **({"subdomain": subdomain} if subdomain else {})}
        if volumes := self._claims.volumes(ordinal, pod["spec"].get("volumes") or []):
            pod["spec"]["volumes"] = volumes
        self._claims.create(ordinal)
        title = f"Create Pod {name} in StatefulSet {name_of(self.set)}"
        try:
            self._claims.own(self._cluster.create(pod))
        except Refusal as refusal:
            words = f"{title} failed error: {refusal_message(refusal)}"
            self._controller.event(self.set, "FailedCreate", words, warning=True)
            raise
        self._controller.event(self.set, "SuccessfulCreate", f"{title} successful")

    def _stays_old(self, ordinal: int) -> bool:
        """Below the partition; without the settings of a rolling update, as many as still have the old revision."""
        strategy = self.set["spec"].get("updateStrategy") or {}
        if not self._rolling or "rollingUpdate" in strategy:
            return self._rolling and ordinal < self._start + self._partition
        return ordinal < self._start + int((self.set.get("status") or {}).get("currentReplicas") or 0)

    def _delete(self, pod: Obj) -> None:
        self._cluster.delete(PODS, pod)
        message = f"Delete Pod {name_of(pod)} in StatefulSet {name_of(self.set)} successful"
        self._controller.event(self.set, "SuccessfulDelete", message)

    def status(self, pods: Pods) -> Obj:
        current, update = name_of(self.current), name_of(self.update)
        here = [pod for pod in pods.values() if phase_of(pod)]
        ready = [pod for pod in here if phase_of(pod) == "Running" and is_ready(pod)]
        now = self._cluster.clock.now()
        revised = [labels_of(pod).get(_REVISION) for pod in here if not is_deleting(pod)]
        updated = revised.count(update)
        if self._rolling and updated == len(ready) == len(here) == self._count:
            current = update
        counts = {
            "readyReplicas": len(ready),
            "currentReplicas": revised.count(current),
            "updatedReplicas": updated,
        }
        before = self.set.get("status") or {}
        return {
            **({"conditions": before["conditions"]} if "conditions" in before else {}),
            "observedGeneration": generation_of(self.set),
            "replicas": len(here),
            **{name: count for name, count in counts.items() if count},
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": int(before.get("collisionCount") or 0),
            "availableReplicas": sum(is_available(pod, self.least, now) for pod in ready),
        }


class _Claims:
    """The PersistentVolumeClaims of a StatefulSet: one for each template and ordinal."""

    def __init__(self, controller: StatefulSets, found: Obj, wanted: range) -> None:
        self._controller = controller
        self._cluster = controller.cluster
        self._set = found
        self._wanted = wanted
        self._templates: list[Obj] = found["spec"].get("volumeClaimTemplates") or []
        policy = found["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        self._scaled = policy.get("whenScaled") == "Delete"
        self._deleted = policy.get("whenDeleted") == "Delete"

    def volumes(self, ordinal: int, given: list[Obj]) -> list[Obj]:
        names = {name_of(template) for template in self._templates}
        own = [
            {"name": name_of(template), "persistentVolumeClaim": {"claimName": self._name(template, ordinal)}}
            for template in self._templates
        ]
        return [*own, *(volume for volume in given if volume["name"] not in names)]

    def create(self, ordinal: int) -> None:
        """The missing ones."""
        for template in self._templates:
            name = self._name(template, ordinal)
            if self._cluster.get(CLAIMS, Key(namespace_of(self._set), name)) is not None:
                continue
            selected = self._set["spec"]["selector"].get("matchLabels") or {}
            meta = {**template["metadata"], "name": name, "namespace": namespace_of(self._set)}
            meta["labels"] = {**labels_of(template), **selected}
            made = {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind, "metadata": meta, "spec": template["spec"]}
            self._cluster.create(made)
            whose = f"Pod {name_of(self._set)}-{ordinal} in StatefulSet {name_of(self._set)}"
            self._controller.event(self._set, "SuccessfulCreate", f"Create Claim {name} {whose} success")

    def own(self, pod: Obj) -> None:
        """Let the garbage collector delete the claims of a pod with the StatefulSet, or with the pod."""
        ordinal = _ordinal(self._set, pod)
        for found in self._of(ordinal):
            references = found["metadata"].get("ownerReferences") or []
            if any(self._is_foreign(reference, pod) for reference in references):
                continue
            others = [one for one in references if one["uid"] not in (uid_of(self._set), uid_of(pod))]
            owner = self._owner(pod, ordinal)
            wanted = [*others, *([owner_reference(owner)] if owner is not None else [])]
            if wanted != references:
                self._cluster.merge(CLAIMS, found, {"metadata": {"ownerReferences": wanted}})

    def _owner(self, pod: Obj, ordinal: int) -> Obj | None:
        if self._scaled and ordinal not in self._wanted:
            return pod
        return self._set if self._deleted else None

    def _is_foreign(self, reference: Obj, pod: Obj) -> bool:
        """Another controller, or a former StatefulSet or pod with this name."""
        if reference["uid"] in (uid_of(self._set), uid_of(pod)):
            return False
        named = (reference["kind"], reference["name"])
        return bool(reference.get("controller")) or named in (
            (STATEFULSETS.kind, name_of(self._set)),
            (PODS.kind, name_of(pod)),
        )

    def stale(self, ordinal: int) -> bool:
        """Whether a claim of the former pod still has to be collected."""
        name = f"{name_of(self._set)}-{ordinal}"
        return self._scaled and any(
            (reference["kind"], reference["name"]) == (PODS.kind, name)
            for found in self._of(ordinal)
            for reference in found["metadata"].get("ownerReferences") or ()
        )

    def _of(self, ordinal: int) -> Iterator[Obj]:
        names = [self._name(template, ordinal) for template in self._templates]
        found = [self._cluster.get(CLAIMS, Key(namespace_of(self._set), name)) for name in names]
        return (one for one in found if one is not None)

    def _name(self, template: Obj, ordinal: int) -> str:
        return f"{name_of(template)}-{name_of(self._set)}-{ordinal}"


class Pods(dict[int, Obj]):
    """By ordinal."""


def _members(cluster: ClusterAccess, found: Obj) -> Pods:
    selector = from_label_selector(found["spec"].get("selector"))
    pods = cluster.claim(PODS, found, selector, lambda pod: _ordinal(found, pod) >= 0)
    return Pods((_ordinal(found, pod), pod) for pod in pods)


def _ordinal(found: Obj, pod: Obj) -> int:
    """-1 for a pod of another name."""
    parent, _, number = name_of(pod).rpartition("-")
    return int(number) if parent == name_of(found) and number.isdecimal() else -1
