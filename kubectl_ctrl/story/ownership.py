"""An object and what it owns, down to the last: linked by owner references, each with how ready it is. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of
from kubectl_ctrl.model.record import Branch, Made, Recorded, Source
from kubectl_ctrl.model.resources import DEPLOYMENTS, PODS, REPLICASETS, STATEFULSETS, Resource

JOBS = Resource("batch", "v1", "jobs", "Job")
CRONJOBS = Resource("batch", "v1", "cronjobs", "CronJob")
DAEMONSETS = Resource("apps", "v1", "daemonsets", "DaemonSet")

# What the controllers of Kubernetes itself make of what is made.
_MAKES = {
    DEPLOYMENTS: (REPLICASETS,),
    REPLICASETS: (PODS,),
    STATEFULSETS: (PODS,),
    DAEMONSETS: (PODS,),
    CRONJOBS: (JOBS,),
    JOBS: (PODS,),
}
# The conditions that say whether an object does what it is there for, the most telling first.
_TELLING = ("Ready", "Available", "Complete", "Established")
_DEEPEST = 16


class Leaf(NamedTuple):
    """An object and its type, which items of a list do not say."""

    resource: Resource
    obj: Obj


def chain(roots: Iterable[Resource]) -> tuple[Resource, ...]:
    """These types, and those of what becomes of their objects."""
    found: dict[Resource, None] = {}
    waiting = list(roots)
    while waiting:
        resource = waiting.pop(0)
        if resource not in found:
            found[resource] = None
            waiting += _MAKES.get(resource, ())
    return tuple(found)


def grown(root: Leaf, others: Iterable[Leaf], at: float) -> Branch:
    """The tree below an object, of those of the others that it owns directly or through each other."""
    owned: dict[str, list[Leaf]] = defaultdict(list)
    for leaf in others:
        for reference in leaf.obj["metadata"].get("ownerReferences") or ():
            owned[str(reference.get("uid") or "")].append(leaf)
    owned.pop("", None)
    return _branch(root, owned, at, frozenset())


def _branch(leaf: Leaf, owned: dict[str, list[Leaf]], at: float, above: frozenset[str]) -> Branch:
    obj, uid = leaf.obj, uid_of(leaf.obj)
    # Two objects can name each other as owners.
    inner = [] if uid in above or len(above) > _DEEPEST else owned.get(uid, [])
    ready, reason = readiness(obj)
    created = obj["metadata"].get("creationTimestamp")
    return Branch(
        resource=leaf.resource,
        key=key_of(obj),
        uid=uid,
        ready=ready,
        reason=reason,
        created=parse_rfc3339(created) if created else None,
        source=Source.LIVE,
        at=at,
        branches=tuple(
            _branch(one, owned, at, above | {uid})
            for one in sorted(inner, key=lambda one: (one.resource.kind, key_of(one.obj)))
        ),
    )


def readiness(obj: Obj) -> tuple[str, str]:
    """Whether it does what it is there for (True, False, Unknown; "" where nothing says so), and why."""
    if is_deleting(obj):
        return "False", "Deleting"
    status = obj.get("status") or {}
    for name in _TELLING:
        condition = find(obj, name)
        if condition is not None:
            stands = str(condition.get("status") or "Unknown")
            return stands, _trouble(status, stands) or str(condition.get("reason") or "")
    if isinstance(wanted := (obj.get("spec") or {}).get("replicas"), int):
        ready = int(status.get("readyReplicas") or 0)
        return str(ready >= wanted), f"{ready}/{wanted} ready"
    return "", str(status.get("phase") or "")


def _trouble(status: Obj, stands: str) -> str:
    """What holds up a Pod: its containers say more than its conditions."""
    if stands == "True":
        return ""
    for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = one.get("state") or {}
        for kind in ("waiting", "terminated"):
            reason = (state.get(kind) or {}).get("reason")
            if reason and reason not in ("Completed", "PodInitializing", "ContainerCreating"):
                return str(reason)
    return ""


def remembered(root: Branch, attempts: Sequence[Recorded], owns: Iterable[Resource]) -> Branch:
    """The root with the objects that its recorded attempts made and did not delete again; how they are is not known."""
    types = frozenset(owns)
    known: dict[tuple[Resource, object], Branch] = {}
    for attempt in attempts:
        for made in attempt.writes:
            call = made.call
            if call.resource is None or call.resource not in types or call.subresource or not call.granted:
                continue
            place = (call.resource, (call.namespace, call.name))
            before = known.pop(place, None)
            if call.verb != "delete":
                known[place] = _recorded(call.resource, made, before)
    return Branch(
        resource=root.resource,
        key=root.key,
        uid=root.uid,
        source=Source.RECORDED,
        at=root.at,
        branches=tuple(sorted(known.values(), key=lambda one: (one.resource.kind, one.key))),
    )


def _recorded(resource: Resource, made: Made, before: Branch | None) -> Branch:
    call = made.call
    # An apply that found nothing made it, too.
    created = call.started if call.code == 201 else before.created if before else None
    return Branch(
        resource=resource,
        key=Key(call.namespace, call.name),
        uid=call.uid,
        created=created,
        source=Source.RECORDED,
        at=call.started + call.took,
    )
