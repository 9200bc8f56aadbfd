"""The live doors of single attempts over caches that run, without the loop around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kubectl_ctrl.cache.informers import Informers
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.client.options import Scope
from kubectl_ctrl.model.attempt import Attempt, Call, Outcome, Verdict
from kubectl_ctrl.model.objects import Key, Obj, name_of, namespace_of
from kubectl_ctrl.runtime.access import AccessParts, LiveReader, LiveWriter
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.caches import Caches
from kubectl_ctrl.runtime.echoes import Echoes
from kubectl_ctrl.runtime.noop import Settlements
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.observers import Observers
from kubectl_ctrl.runtime.status import Schemas
from kubectl_ctrl.testing.loop import settle
from tests.objects import started
from tests.runtime.world import World

BEAR = Key("default", "bear")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An event that an attempt asked for."""

    about: str
    type: str
    reason: str
    message: str
    attempt: str


class Listener:
    """A recorder that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[Said] = []

    def record(self, about: Obj, *, type: str, reason: str, message: str, attempt: str) -> None:  # noqa: A002
        self.said.append(Said(about=name_of(about), type=type, reason=reason, message=message, attempt=attempt))

    async def run(self) -> None:
        """There is nothing to do."""

    async def flush(self) -> None:
        """There is nothing to wait for."""


class Try:
    """One attempt's doors and notes."""

    def __init__(self, read: LiveReader, write: LiveWriter, notes: Notes) -> None:
        self.read = read
        self.write = write
        self.notes = notes

    @property
    def attempt(self) -> Attempt:
        return self.notes.finished(Verdict(outcome=Outcome.DONE), took=0.0, echoes=0, traceback="")

    @property
    def calls(self) -> list[str]:
        """`apply deployments/bear 200`, dry runs with a `?`."""
        return [_told(call) for call in self.attempt.calls]


def _told(call: Call) -> str:
    what = f"{call.resource.plural if call.resource else ''}/{call.name}" + (
        f"/{call.subresource}" if call.subresource else ""
    )
    return f"{call.verb}{'?' if call.dry_run else ''} {what} {call.code}"


class Doors:
    """Everything that attempts of one controller share; `forget` makes it a process that was just started."""

    def __init__(self, world: World, spec: ControllerSpec) -> None:
        self.world = world
        self.spec = spec
        self.listener = Listener()
        self.informers = Informers(
            world.client(), clock=world.clock, rng=world.rng, managers=frozenset({spec.field_manager})
        )
        found = {resource: self.informers.informer(Selection(resource)) for resource in spec.resources}
        self.caches = Caches(spec, found)
        self.client = world.client()
        self._attempts = 0
        self.forget()

    def forget(self) -> None:
        self.echoes = Echoes(self.spec.field_manager)
        self.equipment = AccessParts(
            manager=self.spec.field_manager,
            caches=self.caches,
            overlays=self.informers,
            echoes=self.echoes,
            settlements=Settlements(),
            schemas=Schemas(self.client, self.world.clock, "toy"),
            recorder=self.listener,
            clock=self.world.clock,
        )

    def next(self, request: Key = BEAR) -> Try:
        self._attempts += 1
        start = started(f"r000-{self._attempts}", controller=self.spec.name, request=request, causes_total=1)
        notes = Notes(start, Observers(), seed=1)
        client = self.client.scoped(Scope(prefix=start.id, note=notes.call))
        return Try(LiveReader(self.caches, client, notes), LiveWriter(self.equipment, client, notes), notes)

    def cached(self, obj: Obj) -> Obj | None:
        """What the cache shows where that object is or was."""
        found: Iterable[Obj | None] = (
            self.caches.get(resource, name_of(obj), namespace_of(obj))
            for resource in self.spec.resources
            if resource.kind == obj["kind"]
        )
        return next(iter(found), None)


@asynccontextmanager
async def doors(world: World, spec: ControllerSpec) -> AsyncIterator[Doors]:
    """With caches that are synced when the block begins."""
    made = Doors(world, spec)
    task = asyncio.create_task(made.informers.run())
    for informer in made.informers.all():
        await informer.wait_synced()
    await settle()
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.wait([task])
