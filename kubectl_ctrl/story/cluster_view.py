"""Short reads of the cluster by verbs that show recordings: two seconds in all, and results until then count."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import CallError, CtrlError, NotFound, NotServed, TimedOut
from kubectl_ctrl.findings.case import Body, Place
from kubectl_ctrl.kubeconfig.resolution import Resolved, ca_fingerprint
from kubectl_ctrl.model.objects import Key, Obj, uid_of
from kubectl_ctrl.model.record import FactSource, RecordedCluster
from kubectl_ctrl.model.resources import EVENTS, Resource
from kubectl_ctrl.story.lookup import split_words
from kubectl_ctrl.story.query import Query

if TYPE_CHECKING:
    from kubectl_ctrl.client.client import Client
    from kubectl_ctrl.findings.inference import InferredState

PATIENCE = 2.0

Work = Callable[["Client", Resolved], Awaitable[None]]


def within_patience(query: Query, work: Work, *, cluster: RecordedCluster | None = None) -> CtrlError | None:
    """Run `work` with a client of the selected cluster, which must be `cluster` if given; returns the error, if any.

    `work` stores its results where its caller sees them, so that those in time count even if the rest is late.
    """
    import asyncio  # slow to load, and most calls ask no cluster

    clock, target = SystemClock(), query.target

    async def ask() -> None:
        async with clock.timeout(PATIENCE):
            resolved = target.readable()
            if cluster is not None and (resolved.server, ca_fingerprint(resolved)) not in cluster.servers:
                raise CtrlError(f"The context {resolved.context!r} points to another cluster than the recorded one.")
            client = await target.connected(resolved, clock)
            try:
                await work(client, resolved)
            finally:
                await client.close()

    try:
        asyncio.run(ask())
    except TimeoutError:
        return TimedOut(f"The cluster did not answer within {PATIENCE:g} s.")
    except CtrlError as error:
        return error
    return None


def read_live(query: Query, cluster: RecordedCluster, places: Sequence[Place]) -> tuple[dict[Place, Body], str]:
    """The current state of these objects, and a note if the cluster could not be read."""
    found: dict[Place, Body] = {}

    async def read(client: Client, resolved: Resolved) -> None:
        for place in places:
            obj: Obj | None
            try:
                obj = await client.get(place[0].ref(place[1].name, place[1].namespace))
            except NotServed:
                continue  # without its type, the object cannot be reported as deleted
            except NotFound:
                obj = None
            found[place] = Body(obj=obj, source=FactSource.LIVE, at=client.clock.now())

    error = within_patience(query, read, cluster=cluster)
    return found, f"Shown as recorded. {query.target.briefly(error)}" if error is not None else ""


def infer_object(query: Query, words: Sequence[str]) -> tuple[InferredState | None, CtrlError | None]:
    """The object of these words in the cluster, with its inferred activity, or an error; neither with --offline."""
    if query.offline:
        return None, None
    kind, name = split_words(words)
    signs = _Signs(kind, name)
    error = within_patience(query, signs.read)
    return signs.found(), error


class _Signs:
    """An unrecorded object and its events, as far as they could be read in time."""

    def __init__(self, kind: str, name: str) -> None:
        self._kind = kind
        self._name = name
        self._context = ""
        self._object: tuple[Resource, Key, Obj] | None = None
        self._events: list[Obj] = []
        self._lacking = ["The events about it could not be read in time."]

    async def read(self, client: Client, resolved: Resolved) -> None:
        from kubectl_ctrl.client.options import ListQuery
        from kubectl_ctrl.target import guard

        self._context = guard.context_name(resolved)
        resource = (await client.discovery.find(self._kind)).resource
        ref = resource.ref(self._name, resolved.namespace)
        obj = await client.get(ref)
        self._object = resource, ref.key, obj
        try:
            # Events of cluster-scoped objects are in `default` or in any namespace that their sender chose.
            query = ListQuery(namespace=ref.namespace, fields=f"involvedObject.uid={uid_of(obj)}")
            self._events = list((await client.list(EVENTS, query)).items)
            self._lacking = []
        except CallError as error:
            self._lacking = [f"The events about it could not be read: {error.message}"]

    def found(self) -> InferredState | None:
        if self._object is None:
            return None
        from kubectl_ctrl.findings.inference import infer

        resource, key, obj = self._object
        at = SystemClock().now()
        return infer(resource, key, obj, self._events, context=self._context, at=at, lacking=self._lacking)
