"""What the controllers of StatefulSets, DaemonSets, Jobs and their like have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kubectl_ctrl.model.objects import Key, Obj, key_of, labels_of, name_of, namespace_of
from kubectl_ctrl.model.owners import controller_of, owner_reference
from kubectl_ctrl.model.patches import merge_patch, same
from kubectl_ctrl.model.resources import PODS, Resource
from kubectl_ctrl.model.selectors import from_label_selector
from kubectl_ctrl.sandbox.controllers import pods
from kubectl_ctrl.sandbox.controllers.base import Controller
from kubectl_ctrl.sandbox.controllers.pods import phase_of, seconds_until_available
from kubectl_ctrl.sandbox.storage import StoredChange


class WorkloadController(Controller):
    """A controller of one resource type whose objects own others."""

    resource: ClassVar[Resource]
    owned: ClassVar[tuple[Resource, ...]] = (PODS,)
    source: ClassVar[str]  # of its events

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table == self.resource.full_name:
            yield change.key
        elif any(table == owned.full_name for owned in self.owned):
            yield from self._owners(change)

    def _owners(self, change: StoredChange) -> Iterator[Key]:
        for obj in filter(None, (change.old, change.new)):
            reference = controller_of(obj)
            if reference is None:
                yield from self._adopters(obj)
            elif (reference["kind"], reference["apiVersion"]) == (self.resource.kind, self.resource.api_version):
                yield Key(namespace_of(obj), reference["name"])

    def _adopters(self, orphan: Obj) -> Iterator[Key]:
        """The objects whose selector matches an object without a controller."""
        for owner in self.cluster.all(self.resource, namespace_of(orphan)):
            selector = owner["spec"].get("selector")
            if selector and from_label_selector(selector).matches(labels_of(orphan)):
                yield key_of(owner)

    def claim(self, owner: Obj) -> list[Obj]:
        """The pods of an owner, after it adopted those it selects and released those it does not."""
        return self.cluster.claim(PODS, owner, from_label_selector(owner["spec"].get("selector")))

    def event(self, about: Obj, reason: str, message: str, *, warning: bool = False) -> None:
        kind = "Warning" if warning else "Normal"
        self.cluster.event(about, reason, message, kind=kind, source=self.source)

    def write_status(self, obj: Obj, status: Obj) -> None:
        """Replace the status; unlike a plain merge, also inside its fields."""
        before = obj.get("status") or {}
        if not same(before, status):
            self.cluster.merge(self.resource, obj, {"status": merge_patch(before, status)}, "status")

    def create_pod(self, owner: Obj, pod: Obj) -> Obj:
        return pods.create_pod(self.cluster, pod, owner, self.source)

    def delete_pod(self, owner: Obj, pod: Obj) -> None:
        pods.delete_pod(self.cluster, pod, owner, self.source)


def pod_of(owner: Obj, template: Obj, **metadata: Any) -> Obj:
    """A pod of a template; `metadata` has its name or prefix, and replaces labels and annotations."""
    meta = template.get("metadata") or {}
    found = {
        "namespace": namespace_of(owner),
        **{name: meta.get(name) for name in ("labels", "annotations", "finalizers")},
        "ownerReferences": [owner_reference(owner)],
        **metadata,
    }
    kept = {key: value for key, value in found.items() if value}
    return {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": kept, "spec": dict(template["spec"])}


def is_finished(pod: Obj) -> bool:
    return phase_of(pod) in ("Succeeded", "Failed")


def is_available(pod: Obj, least: int, now: float) -> bool:
    """Ready for at least that many seconds."""
    return not seconds_until_available(pod, least, now)


def next_availability(found: Iterable[Obj], least: int, now: float) -> float | None:
    """The seconds until the next ready pod is available."""
    waits = [seconds_until_available(pod, least, now) for pod in found]
    return min((wait for wait in waits if 0 < wait < float("inf")), default=None)


def scaled(value: Any, total: int, *, up: bool) -> int:
    """A number, or a percentage of a total rounded up or down."""
    if not isinstance(value, str):
        return int(value or 0)
    parts = int(value.rstrip("%")) * total
    return -(-parts // 100) if up else parts // 100


def age_order(obj: Obj) -> tuple[str, str]:
    return (str(obj["metadata"].get("creationTimestamp") or ""), name_of(obj))


def has_finalizer(obj: Obj, name: str) -> bool:
    return name in (obj["metadata"].get("finalizers") or ())
