"""Clusters of the sandbox: one process of this Python that is an API server and plays nodes and pods.

Everything is below `sandbox` in the cluster's folder. Its process is found by its command line, which names that
folder, so the folder is enough to find a cluster and delete it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from kubectl_ctrl import files, processes
from kubectl_ctrl.clusters import ports
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, CreatedCluster, Fitness, Machine, Note
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.clusters.sandbox_server import MODULE, START, SandboxServer
from kubectl_ctrl.errors import ClusterError, UsageError
from kubectl_ctrl.model.suggestions import ctrl

_PORT = "sandbox"


class SandboxProvider:
    """See provider.Provider."""

    name = "sandbox"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __repr__(self) -> str:
        return "SandboxProvider()"

    async def fitness(self, spec: ClusterSpec) -> Fitness:
        if spec.image:
            return _unsupported("its nodes have no image, so --image does not apply", "omit --image")
        if spec.load:
            return _unsupported("nothing runs in its pods, so --load does not apply", "omit --load")
        if spec.config:
            return _unsupported("it has no configuration file, so --config does not apply", "omit --config")
        return Fitness(usable=True, text="sandbox, an API server that is part of kubectl ctrl")

    async def foreign(self, name: str) -> str:
        return ""

    async def state(self, entry: ClusterEntry) -> ClusterState:
        place = _Place(entry)
        if place.pids():
            return ClusterState.RUNNING
        if place.kubeconfig.exists() and place.port() is not None:
            return ClusterState.STOPPED
        return ClusterState.PARTIAL if place.folder.exists() else ClusterState.ABSENT

    async def create(self, entry: ClusterEntry, spec: ClusterSpec, note: Note) -> CreatedCluster:
        place = _Place(entry)
        nodes = 1 if spec.nodes is None else spec.nodes
        try:
            place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # From a random port on: kubectl keeps what it discovered of a server by its port, also of a deleted one.
            start = self._machine.rng.randrange(ports.COUNT)
            port = (await ports.reserved(place.cluster, (_PORT,), self._machine.clock, start=start))[_PORT]
            await self._serve(place, port, nodes, spec.wait, note)
            content = place.kubeconfig.read_text()
        except OSError as error:
            raise ClusterError(
                f"{str(error.filename or place.folder)!r} cannot be written: {error.strerror}.",
                next_step=files.state_remedy(error),
            ) from error
        return CreatedCluster(context=place.context, kubeconfig=content, version="", notes={"nodes": str(nodes)})

    async def start(self, entry: ClusterEntry, note: Note) -> None:
        place = _Place(entry)
        port = place.port()
        if port is not None and ports.taken([port]):
            raise ClusterError(
                f"Cluster {entry.name!r} cannot be started: another program uses its port {port}.",
                next_step=f"stop that program, then repeat: {ctrl('up', '--name', entry.name)}",
            )
        await self._serve(place, port or 0, int(entry.notes.get("nodes", "1")), START, note)

    async def load(self, entry: ClusterEntry, images: Sequence[str]) -> None:
        raise UsageError(
            f"Images cannot be loaded into a sandbox ({', '.join(images)}): nothing runs in its pods.",
            next_step="leave out --load, or use --provider kind",
        )

    async def logs(self, entry: ClusterEntry, folder: Path) -> None:
        try:
            _Place(entry).copy_log(folder)
        except OSError as error:
            raise ClusterError(
                f"The log of cluster {entry.name!r} cannot be copied: {error}.",
                next_step="choose another folder with --to",
            ) from error

    async def delete(self, entry: ClusterEntry, note: Note) -> None:
        place = _Place(entry)
        await processes.kill_module(MODULE, place.folder, self._machine.clock)
        try:
            if place.folder.is_dir():
                shutil.rmtree(place.folder)
            ports.forget(place.cluster)
        except OSError as error:
            raise ClusterError(
                f"{str(error.filename)!r} of cluster {entry.name!r} cannot be removed: {error.strerror}.",
                next_step=f"make it writable, then repeat: {ctrl('down', entry.name)}",
            ) from error

    async def _serve(self, place: _Place, port: int, nodes: int, patience: float, note: Note) -> None:
        """Start the process, and return when it serves: then it has written its kubeconfig."""
        note("starting the API server")
        options = ("--port", str(port), "--nodes", str(nodes), "--data")
        machine = self._machine
        await place.server.start(*options, clock=machine.clock, environ=machine.environ, patience=patience)


class _Place:
    """The paths of one cluster."""

    def __init__(self, entry: ClusterEntry) -> None:
        self.name = entry.name
        self.context = f"sandbox-{entry.name}"
        self.cluster = entry.folder.resolve()
        self.folder = self.cluster / "sandbox"
        self.server = SandboxServer(
            folder=self.folder,
            context=self.context,
            owner=f"cluster {self.name!r}",
            remedy="-v 1 shows its full output; --keep-on-failure keeps the cluster for inspection",
        )
        self.kubeconfig = self.server.kubeconfig

    def pids(self) -> tuple[int, ...]:
        return processes.of_module(MODULE, self.folder)

    def port(self) -> int | None:
        return ports.recorded(self.cluster).get(_PORT)

    def copy_log(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.server.log, folder)

    def __repr__(self) -> str:
        return f"_Place({str(self.folder)!r})"


def _unsupported(text: str, next_step: str) -> Fitness:
    return Fitness(usable=False, text=text, next_step=f"{next_step}, or use --provider kind", usage=True)
