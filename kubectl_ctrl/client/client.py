"""The verbs of the Kubernetes API on raw objects, for one scope.

Every call has a deadline, an Audit-ID and a record, and ends with an answer or an error of our tree. Nothing here
caches objects, and nothing retries beyond what one call may repeat (see `retry`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import copy
from random import Random

from kubectl_ctrl.client import requests
from kubectl_ctrl.client.calls import Caller
from kubectl_ctrl.client.counters import Counters
from kubectl_ctrl.client.discovery import Discovery
from kubectl_ctrl.client.lists import Listed, joined, page_of
from kubectl_ctrl.client.options import (
    LIST_ALL,
    PLAIN_DELETE,
    PLAIN_WRITE,
    WATCH_ALL,
    DeleteOptions,
    ListQuery,
    PatchKind,
    Scope,
    WatchQuery,
    WriteOptions,
)
from kubectl_ctrl.client.order import JSON, Body
from kubectl_ctrl.client.schema import SchemaCache
from kubectl_ctrl.client.shapes import expected_of
from kubectl_ctrl.client.transport import HttpResponse, Transport
from kubectl_ctrl.client.watch import Watch
from kubectl_ctrl.client.wire import Wire, random_text
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import AlreadyExists, BadAnswer, Expired
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.value import replace

# As the API server expands generateName: so much of the prefix, then so many letters, and so many tries.
_LONGEST_PREFIX = 58
_SUFFIX = 5
_NAME_TRIES = 8


class Client:
    """The verbs; `scoped` gives the same client on somebody else's behalf, with the connection and counters shared."""

    def __init__(
        self, transport: Transport, *, clock: Clock, rng: Random, user_agent: str, scope: Scope | None = None
    ) -> None:
        self._wire = Wire(transport, clock=clock, rng=rng, user_agent=user_agent)
        self._caller = Caller(self._wire, scope or Scope())
        self.clock = clock
        self.discovery = Discovery(self)
        self.schemas = SchemaCache()

    def scoped(self, scope: Scope) -> Client:
        client = copy(self)
        client._caller = Caller(self._wire, scope)  # noqa: SLF001  # of the same class
        return client

    def as_agent(self, user_agent: str) -> Client:
        """The same client under another User-Agent; everything else stays shared."""
        client, wire = copy(self), self._wire.as_agent(user_agent)
        client._wire, client._caller = wire, Caller(wire, self.scope)  # noqa: SLF001  # of the same class
        return client

    @property
    def scope(self) -> Scope:
        return self._caller.scope

    @property
    def transport(self) -> Transport:
        """What its requests go through; another client of the same server can use it too."""
        return self._wire.transport

    @property
    def counters(self) -> Counters:
        return self._wire.counters

    async def get(self, ref: ObjectRef) -> Obj:
        return await self._caller.call(requests.get(ref))

    async def list(self, resource: Resource, query: ListQuery = LIST_ALL) -> Listed:
        """All objects, over as many pages as it takes; when a page expires on the way, all of them in one."""
        pages = []
        try:
            async for page in self._pages(resource, query, resend=True):
                pages.append(page)  # noqa: PERF401  # what came before an error tells how to go on
        except Expired:
            if not pages:
                raise
            pages = [page async for page in self._pages(resource, replace(query, limit=0), resend=True)]
        return joined(pages)

    def pages(self, resource: Resource, query: ListQuery = LIST_ALL) -> AsyncIterator[Listed]:
        """Page by page, each asked for once: errors are the caller's, and so is the pace of trying again."""
        return self._pages(resource, query, resend=False)

    def watch(self, resource: Resource, query: WatchQuery = WATCH_ALL) -> Watch:
        """Nothing is sent before the first item is asked for."""
        return Watch(self._caller, resource, query)

    async def create(self, where: Resource | ObjectRef, obj: Obj, options: WriteOptions = PLAIN_WRITE) -> Obj:
        """A new object, or a POST to a subresource that a reference names.

        A generateName is expanded here: only a name lets a lost answer be looked up instead of leaving two objects.
        """
        if isinstance(where, ObjectRef) or obj["metadata"].get("name") or not obj["metadata"].get("generateName"):
            return await self._caller.call(requests.create(where, obj, options))
        for left in reversed(range(_NAME_TRIES)):
            try:
                return await self._caller.call(requests.create(where, self._named(obj), options))
            except AlreadyExists:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def replace(self, ref: ObjectRef, obj: Obj, options: WriteOptions = PLAIN_WRITE) -> Obj:
        return await self._caller.call(requests.replace(ref, obj, options))

    async def patch(self, ref: ObjectRef, body: Body, kind: PatchKind, options: WriteOptions = PLAIN_WRITE) -> Obj:
        return await self._caller.call(requests.patch(ref, body, kind, options))

    async def delete(self, ref: ObjectRef, options: DeleteOptions = PLAIN_DELETE) -> Obj:
        """The object when it is still there (finalizers, grace), else a Status."""
        return await self._caller.call(requests.delete(ref, options))

    async def raw(
        self, method: str, path: str, *, query: requests.Query = (), accept: str = JSON, body: Obj | None = None
    ) -> HttpResponse:
        """Any request of the API server; `path` is percent-encoded. Answers that are no success are errors."""
        return await self._caller.response(requests.raw(method, path, query, accept, body))

    async def close(self) -> None:
        await self._wire.transport.close()

    async def _pages(self, resource: Resource, query: ListQuery, *, resend: bool) -> AsyncIterator[Listed]:
        token = ""
        while True:
            order = requests.list_page(resource, query, token, resend=resend)
            answer = await self._caller.call(order)
            page, following = page_of(answer, expected_of(order, query), order.site(""))
            if following and following == token:
                raise BadAnswer(
                    f"The list of {order.target} has a page whose continue token points to itself.", site=order.site("")
                )
            yield page
            if not following:
                return
            token = following

    def _named(self, obj: Obj) -> Obj:
        prefix = str(obj["metadata"]["generateName"])[:_LONGEST_PREFIX]
        name = prefix + random_text(self._wire.rng, _SUFFIX)
        return {**obj, "metadata": {**obj["metadata"], "name": name}}

    def __repr__(self) -> str:
        return f"Client({self._wire.user_agent!r}, {self.counters})"
