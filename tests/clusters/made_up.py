"""A provider whose clusters are files, and which fails where a test wants it to: for what is above all providers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, CreatedCluster, Fitness, Machine, Note
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.errors import ClusterError

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: made-up
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: made-up, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
"""


@dataclass(kw_only=True)
class MadeUp:
    """What it did is in `did`; a word in `fails` makes that method fail, one in `hangs` makes it wait for ever."""

    name: str = "made-up"
    fitting: Fitness = field(default_factory=lambda: Fitness(usable=True, text="made-up v1"))
    owner: str = ""
    now: ClusterState = ClusterState.RUNNING
    did: list[str] = field(default_factory=list)
    fails: set[str] = field(default_factory=set)
    hangs: set[str] = field(default_factory=set)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def fitness(self, spec: ClusterSpec) -> Fitness:
        return self.fitting

    async def foreign(self, name: str) -> str:
        return self.owner

    async def state(self, entry: ClusterEntry) -> ClusterState:
        return self.now

    async def create(self, entry: ClusterEntry, spec: ClusterSpec, note: Note) -> CreatedCluster:
        await self._do("create")
        return CreatedCluster(context="made-up", kubeconfig=KUBECONFIG, version="", notes={"made": "up"})

    async def start(self, entry: ClusterEntry, note: Note) -> None:
        await self._do("start")

    async def load(self, entry: ClusterEntry, images: Sequence[str]) -> None:
        await self._do("load")

    async def logs(self, entry: ClusterEntry, folder: Path) -> None:
        await self._do("logs")

    async def delete(self, entry: ClusterEntry, note: Note) -> None:
        await self._do(f"delete {entry.phase}")

    async def _do(self, what: str) -> None:
        self.did.append(what)
        word = what.partition(" ")[0]
        if word in self.hangs:
            self.reached.set()
            await asyncio.Event().wait()
        if word in self.fails:
            raise ClusterError(f"The {what} failed.", next_step="try it again", output="all that it said")


def machine(folder: Path) -> Machine:
    return Machine(clock=SystemClock(), rng=Random(58), environ={"HOME": str(folder)}, cache=folder / "cache")
