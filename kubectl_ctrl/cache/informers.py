"""All informers of a process, one per selection; started and stopped one by one or together."""

from __future__ import annotations

import asyncio
from random import Random

from kubectl_ctrl.cache.informer import Informer
from kubectl_ctrl.cache.projection import StringPool
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource


class Informers:
    """The informers of one client. Owned fields are kept for the field managers in `managers` alone.

    With `read_only_objects`, code that changes a cached object in place raises at that line; it costs CPU time.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        rng: Random,
        managers: frozenset[str],
        read_only_objects: bool = False,
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._managers = managers
        self._read_only_objects = read_only_objects
        self._texts = StringPool()
        self._informers: dict[Selection, Informer] = {}
        self._tasks: dict[Selection, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None  # while running

    def informer(self, selection: Selection) -> Informer:
        """The informer of that selection; created at the first call, and started if the others run."""
        informer = self._informers.get(selection)
        if informer is None:
            informer = Informer(
                selection,
                self._client,
                managers=self._managers,
                texts=self._texts,
                clock=self._clock,
                rng=self._rng,
                read_only_objects=self._read_only_objects,
            )
            self._informers[selection] = informer
            self._start(informer)
        return informer

    def all(self) -> tuple[Informer, ...]:
        """In the order in which they were created."""
        return tuple(self._informers.values())

    def wrote(self, resource: Resource, answer: Obj) -> None:
        """A write was answered with this object: every later read shows it or something newer."""
        for informer in self._of(resource):
            informer.wrote(answer)

    def removed(self, resource: Resource, key: Key, uid: str, version: str) -> None:
        """The server reported that object as deleted: no later read shows it, nor an older object of its name.

        `version` is the last one that the deleter knew.
        """
        for informer in self._of(resource):
            informer.removed(key, uid, version)

    async def run(self) -> None:
        """Run all informers, with those created later, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for informer in self._informers.values():
                    self._start(informer)
                await asyncio.Event().wait()
            finally:
                self._group = None
                self._tasks.clear()

    async def stop(self, selection: Selection) -> None:
        """Stop that informer and forget it; its subscribers are not called any more."""
        informer = self._informers.pop(selection, None)
        if informer is None:
            return
        for subscription in informer.subscriptions:
            subscription.close()
        task = self._tasks.pop(selection, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _start(self, informer: Informer) -> None:
        if self._group is not None and informer.selection not in self._tasks:
            name = f"informer of {informer.selection}"
            self._tasks[informer.selection] = self._group.create_task(informer.run(), name=name)

    def _of(self, resource: Resource) -> list[Informer]:
        return [informer for informer in self._informers.values() if informer.selection.resource == resource]

    def __repr__(self) -> str:
        objects = sum(len(informer) for informer in self._informers.values())
        return f"Informers({len(self._informers)}, running={len(self._tasks)}, objects={objects})"
