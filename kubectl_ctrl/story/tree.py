"""`trace --tree`: an object and all that it owns, read from the cluster while it answers, else as recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubectl_ctrl.clock import SystemClock, parse_rfc3339
from kubectl_ctrl.errors import CallError, CtrlError, NotServed
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of
from kubectl_ctrl.model.record import Branch, Cluster, Made, Recorded, Source
from kubectl_ctrl.model.resources import DEPLOYMENTS, PODS, REPLICASETS, STATEFULSETS, Resource
from kubectl_ctrl.story.cluster_view import shortly
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    from kubectl_ctrl.client.client import Client
    from kubectl_ctrl.kubeconfig.resolution import Resolved

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


class Grown(Value, kw_only=True):
    """A tree, and a sentence on what it lacks; "" where it lacks nothing."""

    tree: Branch
    note: str = ""


class Asked(Value, kw_only=True):
    """Whose tree is asked for; `cluster` is None where nothing of it is recorded, and any will do."""

    cluster: Cluster | None
    resource: Resource
    key: Key
    uid: str = ""
    owns: Sequence[Resource] = ()  # what its controllers own
    attempts: Sequence[Recorded] = ()


def grown(query: Query, asked: Asked) -> Grown:
    """The tree; without a cluster the one that the recording knows of. Never fails for want of a cluster."""
    types = tuple(dict.fromkeys((*asked.owns, *_made(asked.attempts))))
    if query.offline:
        return _remembered(asked, types, "The cluster was not queried (--offline).")
    look = _Look(asked, chain((asked.resource, *types))[1:])
    error = shortly(query, look.ask, cluster=asked.cluster)
    if look.root is None:
        why = query.target.briefly(error) if error else "The cluster returned nothing."
        return _remembered(asked, types, why)
    tree = tree_of(look.root, look.leaves, SystemClock().now())
    return Grown(tree=tree, note=look.note)


def _made(attempts: Iterable[Recorded]) -> Iterable[Resource]:
    """Types of which objects were made, whether or not they were declared as owned."""
    for attempt in attempts:
        for made in attempt.writes:
            if made.call.code == 201 and made.call.resource is not None:
                yield made.call.resource


def _remembered(asked: Asked, types: Sequence[Resource], why: str) -> Grown:
    at = asked.attempts[-1].started if asked.attempts else SystemClock().now()
    root = Branch(resource=asked.resource, key=asked.key, uid=asked.uid, source=Source.RECORDED, at=at)
    return Grown(tree=remembered(root, asked.attempts, types), note=f"As recorded, marked ~: {why}")


class _Look:
    """What is read in the time that there is."""

    def __init__(self, asked: Asked, types: Sequence[Resource]) -> None:
        self._asked = asked
        self._types = types
        self._read: set[Resource] = set()
        self._refused: dict[Resource, str] = {}
        self.root: Leaf | None = None
        self.leaves: list[Leaf] = []

    async def ask(self, client: Client, resolved: Resolved) -> None:
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
            pass  # there can be none of them
        except CallError as error:
            self._refused[resource] = error.message
            return
        self._read.add(resource)

    @property
    def note(self) -> str:
        lacking = [one for one in self._types if one not in self._read]
        if not lacking:
            return ""
        why = next(iter(self._refused.values()), "the cluster did not answer in time")
        return f"Not everything could be read: {', '.join(one.kind for one in lacking)} ({why.rstrip('.')})."


# The tree, made of objects that are linked by owner references.


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


def tree_of(root: Leaf, others: Iterable[Leaf], at: float) -> Branch:
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
