"""The verbs of the Kubernetes API on raw objects, for one scope.

Every call has a deadline, an Audit-ID and a record, and returns a result or raises an error of `kubectl_ctrl.errors`.
Nothing here caches objects. One request may be sent several times as part of one call, as `retry` describes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import copy
from random import Random

from kubectl_ctrl.client import requests
from kubectl_ctrl.client.calls import Caller
from kubectl_ctrl.client.counters import Counters
from kubectl_ctrl.client.discovery import Discovery
from kubectl_ctrl.client.lists import ListPage, joined, page_of
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
from kubectl_ctrl.client.watch import WatchStream
from kubectl_ctrl.client.wire import Wire, random_text
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import AlreadyExists, BadAnswer, Expired
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.model.transport import HttpResponse, Transport
from kubectl_ctrl.value import replace

# The API server's generateName: the maximum length of the prefix, the length of the suffix, and the attempts.
_LONGEST_PREFIX = 58
_SUFFIX = 5
_NAME_TRIES = 8


class Client:
    """The verbs of one scope. `scoped` returns a client for another scope with the same connections and counters."""

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
        """The same client with another User-Agent; everything else is shared."""
        client, wire = copy(self), self._wire.as_agent(user_agent)
        client._wire, client._caller = wire, Caller(wire, self.scope)  # noqa: SLF001  # of the same class
        return client

    @property
    def scope(self) -> Scope:
        return self._caller.scope

    @property
    def transport(self) -> Transport:
        """Its transport, which another client of the same server may share."""
        return self._wire.transport

    @property
    def counters(self) -> Counters:
        return self._wire.counters

    async def get(self, ref: ObjectRef) -> Obj:
        return await self._caller.call(requests.get(ref))

    async def list(self, resource: Resource, query: ListQuery = LIST_ALL) -> ListPage:
        """All objects, page by page; if the continue token expires, once more without pages, as in client-go."""
        pages = []
        try:
            async for page in self._pages(resource, query, resend=True):
                pages.append(page)  # noqa: PERF401  # after an error, the pages so far are needed
        except Expired:
            if not pages:
                raise
            pages = [page async for page in self._pages(resource, replace(query, limit=0), resend=True)]
        return joined(pages)

    def pages(self, resource: Resource, query: ListQuery = LIST_ALL) -> AsyncIterator[ListPage]:
        """The pages, each requested once: the caller handles errors and retries."""
        return self._pages(resource, query, resend=False)

    def watch(self, resource: Resource, query: WatchQuery = WATCH_ALL) -> WatchStream:
        """A watch; the request is sent when its first item is awaited."""
        return WatchStream(self._caller, resource, query)

    async def create(self, where: Resource | ObjectRef, obj: Obj, options: WriteOptions = PLAIN_WRITE) -> Obj:
        """Create an object, or POST to the subresource of a reference.

        generateName is expanded here, not by the server: if the response is lost, the object can be read by its name.
        Otherwise a retry would create a second one.
        """
        if isinstance(where, ObjectRef) or obj["metadata"].get("name") or not obj["metadata"].get("generateName"):
            return await self._caller.call(requests.create(where, obj, options))
        prefix = str(obj["metadata"]["generateName"])[:_LONGEST_PREFIX]
        for left in reversed(range(_NAME_TRIES)):
            name = prefix + random_text(self._wire.rng, _SUFFIX)
            named = {**obj, "metadata": {**obj["metadata"], "name": name}}
            try:
                return await self._caller.call(requests.create(where, named, options))
            except AlreadyExists:
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def replace(self, ref: ObjectRef, obj: Obj, options: WriteOptions = PLAIN_WRITE) -> Obj:
        return await self._caller.call(requests.replace(ref, obj, options))

    async def patch(self, ref: ObjectRef, body: Body, kind: PatchKind, options: WriteOptions = PLAIN_WRITE) -> Obj:
        return await self._caller.call(requests.patch(ref, body, kind, options))

    async def delete(self, ref: ObjectRef, options: DeleteOptions = PLAIN_DELETE) -> Obj:
        """The object if it still exists (finalizers, grace period), else a Status."""
        return await self._caller.call(requests.delete(ref, options))

    async def raw(
        self, method: str, path: str, *, query: requests.Query = (), accept: str = JSON, body: Obj | None = None
    ) -> HttpResponse:
        """Any request; `path` is percent-encoded. A response other than 2xx is an error."""
        return await self._caller.response(requests.raw(method, path, query, accept, body))

    async def close(self) -> None:
        await self._wire.transport.close()

    async def _pages(self, resource: Resource, query: ListQuery, *, resend: bool) -> AsyncIterator[ListPage]:
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

    def __repr__(self) -> str:
        return f"Client({self._wire.user_agent!r}, {self.counters})"
