"""`trace --tree`: what an object owns, read from the cluster while it answers, else as it was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import CallError, CtrlError, NotServed
from kubectl_ctrl.model.objects import Key, uid_of
from kubectl_ctrl.model.record import Branch, Cluster, Recorded, Source
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.story.ownership import Leaf, chain, remembered
from kubectl_ctrl.story.ownership import grown as tree_of
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    from kubectl_ctrl.client.client import Client
    from kubectl_ctrl.kubeconfig.resolution import Resolved


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


def grown(app: App, given: Given, asked: Asked) -> Grown:
    """The tree; without a cluster the one that the recording knows of. Never fails for want of a cluster."""
    types = tuple(dict.fromkeys((*asked.owns, *_made(asked.attempts))))
    if given.flags.get("offline"):
        return _remembered(asked, types, "The cluster was not asked (--offline).")
    # The client and its event loop are for those who ask.
    from kubectl_ctrl.story.short_query import shortly

    look = _Look(asked, chain((asked.resource, *types))[1:])
    error = shortly(app, given, look.ask, cluster=asked.cluster)
    if look.root is None:
        why = app.briefly(error) if error else "The cluster says nothing of it."
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
            raise CtrlError(f"The {asked.resource.kind} that is there now is another one, of UID {uid_of(obj)}.")
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
        return f"Not all of it could be read: {', '.join(one.kind for one in lacking)} ({why.rstrip('.')})."
