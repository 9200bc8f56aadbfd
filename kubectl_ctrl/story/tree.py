"""`trace --tree`: an object and its owned objects, read from the cluster if it answers, else as recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubectl_ctrl.clock import SystemClock, parse_rfc3339
from kubectl_ctrl.errors import CallError, CtrlError, NotServed
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of
from kubectl_ctrl.model.record import Branch, FactSource, RecordedAttempt, RecordedCluster
from kubectl_ctrl.model.resources import DEPLOYMENTS, PODS, REPLICASETS, STATEFULSETS, Resource
from kubectl_ctrl.story.cluster_view import within_patience
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    from kubectl_ctrl.client.client import Client
    from kubectl_ctrl.kubeconfig.resolution import Resolved

JOBS = Resource("batch", "v1", "jobs", "Job")
CRONJOBS = Resource("batch", "v1", "cronjobs", "CronJob")
DAEMONSETS = Resource("apps", "v1", "daemonsets", "DaemonSet")

# The types that the controllers of Kubernetes create for each type.
_CREATES = {
    DEPLOYMENTS: (REPLICASETS,),
    REPLICASETS: (PODS,),
    STATEFULSETS: (PODS,),
    DAEMONSETS: (PODS,),
    CRONJOBS: (JOBS,),
    JOBS: (PODS,),
}
# The conditions that report readiness, the most specific first.
_READINESS = ("Ready", "Available", "Complete", "Established")
_DEEPEST = 16


class OwnerTree(Value, kw_only=True):
    """A tree, and a sentence on its missing parts, "" if it is complete."""

    tree: Branch
    note: str = ""


class TreeRoot(Value, kw_only=True):
    """The root of a tree; `cluster` is None for an unrecorded object, in any cluster."""

    cluster: RecordedCluster | None
    resource: Resource
    key: Key
    uid: str = ""
    owns: Sequence[Resource] = ()  # types owned by its controllers
    attempts: Sequence[RecordedAttempt] = ()


def owner_tree(query: Query, asked: TreeRoot) -> OwnerTree:
    """The tree in the cluster, or the recorded one if the cluster does not answer."""
    # Objects of further types may have been created without a declaration as owned.
    created = (
        made.call.resource
        for attempt in asked.attempts
        for made in attempt.writes
        if made.call.code == 201 and made.call.resource is not None
    )
    types = tuple(dict.fromkeys((*asked.owns, *created)))
    why = "The cluster was not queried (--offline)."
    if not query.offline:
        read = _Read(asked, chain((asked.resource, *types))[1:])
        error = within_patience(query, read.run, cluster=asked.cluster)
        if read.root is not None:
            return OwnerTree(tree=tree_of(read.root, read.leaves, SystemClock().now()), note=read.note)
        why = query.target.briefly(error) if error else "The cluster returned nothing."
    at = asked.attempts[-1].started if asked.attempts else SystemClock().now()
    root = Branch(resource=asked.resource, key=asked.key, uid=asked.uid, source=FactSource.RECORDED, at=at)
    return OwnerTree(tree=recorded_tree(root, asked.attempts, types), note=f"As recorded, marked ~: {why}")


class _Read:
    """The objects of a tree, as far as they could be read in time."""

    def __init__(self, asked: TreeRoot, types: Sequence[Resource]) -> None:
        self._asked = asked
        self._types = types
        self._read: set[Resource] = set()
        self._refused: dict[Resource, str] = {}
        self.root: Leaf | None = None
        self.leaves: list[Leaf] = []

    async def run(self, client: Client, resolved: Resolved) -> None:
        import asyncio

        asked = self._asked
        obj = await client.get(asked.resource.ref(asked.key.name, asked.key.namespace))
        if asked.uid and uid_of(obj) != asked.uid:
            raise CtrlError(f"The {asked.resource.kind} in the cluster is another object, with UID {uid_of(obj)}.")
        self.root = Leaf(asked.resource, obj)
        await asyncio.gather(*(self._list(client, resource) for resource in self._types))

    async def _list(self, client: Client, resource: Resource) -> None:
        from kubectl_ctrl.client.options import ListQuery

        place = self._asked.key.namespace if resource.namespaced else ""
        try:
            async for page in client.pages(resource, ListQuery(namespace=place)):
                self.leaves += [Leaf(resource, obj) for obj in page.items]
        except NotServed:
            pass  # no such objects can exist
        except CallError as error:
            self._refused[resource] = error.message
            return
        self._read.add(resource)

    @property
    def note(self) -> str:
        missing = [one for one in self._types if one not in self._read]
        if not missing:
            return ""
        why = next(iter(self._refused.values()), "the cluster did not answer in time")
        return f"Not everything could be read: {', '.join(one.kind for one in missing)} ({why.rstrip('.')})."


class Leaf(NamedTuple):
    """An object and its type, which the items of a list lack."""

    resource: Resource
    obj: Obj


def chain(roots: Iterable[Resource]) -> tuple[Resource, ...]:
    """These types, and those that Kubernetes creates for them, directly or not."""
    found: dict[Resource, None] = {}
    waiting = list(roots)
    while waiting:
        resource = waiting.pop(0)
        if resource not in found:
            found[resource] = None
            waiting += _CREATES.get(resource, ())
    return tuple(found)


def tree_of(root: Leaf, others: Iterable[Leaf], at: float) -> Branch:
    """The tree of an object and the others that it owns, directly or not."""
    owned: dict[str, list[Leaf]] = defaultdict(list)
    for leaf in others:
        for reference in leaf.obj["metadata"].get("ownerReferences") or ():
            owned[str(reference.get("uid") or "")].append(leaf)
    owned.pop("", None)
    return _branch(root, owned, at, frozenset())


def _branch(leaf: Leaf, owned: dict[str, list[Leaf]], at: float, above: frozenset[str]) -> Branch:
    obj, uid = leaf.obj, uid_of(leaf.obj)
    # Owner references can form a cycle.
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
        source=FactSource.LIVE,
        at=at,
        branches=tuple(
            _branch(one, owned, at, above | {uid})
            for one in sorted(inner, key=lambda one: (one.resource.kind, key_of(one.obj)))
        ),
    )


def readiness(obj: Obj) -> tuple[str, str]:
    """Its readiness (True, False, Unknown, or "" without any sign of it), and the reason."""
    if is_deleting(obj):
        return "False", "Deleting"
    status = obj.get("status") or {}
    for name in _READINESS:
        condition = find(obj, name)
        if condition is not None:
            ready = str(condition.get("status") or "Unknown")
            return ready, _container_reason(status, ready) or str(condition.get("reason") or "")
    if isinstance(wanted := (obj.get("spec") or {}).get("replicas"), int):
        count = int(status.get("readyReplicas") or 0)
        return str(count >= wanted), f"{count}/{wanted} ready"
    return "", str(status.get("phase") or "")


def _container_reason(status: Obj, ready: str) -> str:
    """Why a Pod is not ready: its containers report more than its conditions."""
    if ready == "True":
        return ""
    for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        state = one.get("state") or {}
        for kind in ("waiting", "terminated"):
            reason = (state.get(kind) or {}).get("reason")
            if reason and reason not in ("Completed", "PodInitializing", "ContainerCreating"):
                return str(reason)
    return ""


def recorded_tree(root: Branch, attempts: Sequence[RecordedAttempt], owns: Iterable[Resource]) -> Branch:
    """The root with the objects that its attempts created and did not delete; their readiness is unknown."""
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
                known[place] = Branch(
                    resource=call.resource,
                    key=Key(call.namespace, call.name),
                    uid=call.uid,
                    # An apply may have created it, too.
                    created=call.started if call.code == 201 else before.created if before else None,
                    source=FactSource.RECORDED,
                    at=call.started + call.took,
                )
    return Branch(
        resource=root.resource,
        key=root.key,
        uid=root.uid,
        source=FactSource.RECORDED,
        at=root.at,
        branches=tuple(sorted(known.values(), key=lambda one: (one.resource.kind, one.key))),
    )
