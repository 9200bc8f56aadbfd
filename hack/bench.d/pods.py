"""A server of many Pods behind the client's transport; prepared bytes, so that only the client is measured."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import islice

from kubectl_ctrl.cache.informers import Informers
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.model.change import Change
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse
from tests.cache.pods import line, pod

_PIECE = 32  # lines that arrive together


class Lines:
    """The response to a watch: the lines, then nothing until it is closed."""

    status = 200
    headers: Mapping[str, str] = {"content-type": "application/json"}

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._closed = asyncio.Event()

    async def batches(self) -> AsyncIterator[list[bytes]]:
        while batch := list(islice(self._lines, _PIECE)):
            yield batch
        await self._closed.wait()

    async def read(self) -> bytes:
        return b""

    async def close(self) -> None:
        self._closed.set()


class PodServer:
    """An empty list, then every event on the watch."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines

    async def send(self, request: HttpRequest) -> HttpResponse:
        empty = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
        return HttpResponse(status=200, headers={"content-type": "application/json"}, body=json.dumps(empty).encode())

    async def open(self, request: HttpRequest) -> Lines | Refused:
        if ("sendInitialEvents", "true") in request.query:
            return Refused()
        return Lines(iter(self._lines))

    async def close(self) -> None: ...


class Refused:
    """Refuses streaming lists: the benchmark measures the watch."""

    status = 422
    headers: Mapping[str, str] = {"content-type": "application/json"}

    async def batches(self) -> AsyncIterator[list[bytes]]:
        pieces: tuple[list[bytes], ...] = ()
        for piece in pieces:
            yield piece

    async def read(self) -> bytes:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}
        return json.dumps({**status, "message": "sendInitialEvents is forbidden"}).encode()

    async def close(self) -> None: ...


def events(count: int, *, versions: int = 1, metadata_only: bool = False) -> Iterator[bytes]:
    """An event for each of `count` Pods and each version, in the order of versions."""
    for version in range(1, versions + 1):
        for number in range(count):
            made = pod(number, version=version)
            yield line(_partial(made) if metadata_only else made, "ADDED" if version == 1 else "MODIFIED")


async def filled(lines: Iterable[bytes], count: int, *, metadata_only: bool = False) -> Informers:
    """Stopped caches, after `count` events have reached a subscriber."""
    clock = SystemClock()
    client = Client(PodServer(lines), clock=clock, rng=random.Random(1), user_agent="bench")
    informers = Informers(client, clock=clock, rng=random.Random(2), managers=frozenset({"kubectl-ctrl-foo"}))
    heard, all_heard = 0, asyncio.Event()

    def hear(_change: Change) -> None:
        nonlocal heard
        heard += 1
        if heard == count:
            all_heard.set()

    informers.informer(Selection(PODS, metadata_only=metadata_only)).subscribe("bench", hear)
    running = asyncio.create_task(informers.run())
    await all_heard.wait()
    running.cancel()
    await asyncio.wait([running])
    return informers


def _partial(obj: Obj) -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
