"""Clusters created by kwokctl without a container runtime: a real control plane, with nodes and pods simulated by kwok.

All files of kwokctl are below `kwok` in the cluster's folder, and each program is started through a link there. So the
folder is enough to find a cluster and delete it: kwokctl is needed to create one, not to delete it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kubectl_ctrl import files
from kubectl_ctrl.clusters import ports, programs
from kubectl_ctrl.clusters.kwok import config
from kubectl_ctrl.clusters.kwok.kwokctl import Kwokctl, PortTaken
from kubectl_ctrl.clusters.kwok.prerequisites import FoundPrograms, needs_of
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, CreatedCluster, Fitness, Machine, Note, recreate
from kubectl_ctrl.clusters.readiness import answering
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.errors import ClusterError, PrerequisiteMissing, UsageError
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.value import replace

_NODES = 1
_TRIES = 3  # because a port can be taken between its choice and the server's start
_START = 60.0  # seconds until a stopped cluster serves again


class KwokProvider:
    """See provider.Provider."""

    name = "kwok"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __repr__(self) -> str:
        return "KwokProvider()"

    async def fitness(self, spec: ClusterSpec) -> Fitness:
        if spec.image:
            return _unsupported("its nodes have no image, so --image does not apply", "omit --image")
        if spec.load:
            return _unsupported("its pods are simulated, so --load does not apply", "omit --load")
        try:
            configuration = config.read(spec.config)
        except UsageError as error:
            return _unsupported(error.message.rstrip("."), error.next_step)
        return (await needs_of(spec, configuration, self._machine)).fitness

    async def foreign(self, name: str) -> str:
        """The folders of both would be separate, but they would share the name of the context."""
        place = _users_folder(self._machine.environ, name)
        return f"kwokctl has a cluster of that name in {str(place)!r}" if place and place.is_dir() else ""

    async def state(self, entry: ClusterEntry) -> ClusterState:
        kwokctl = Kwokctl(entry, self._machine)
        parts = {Path(part["binary"]).name for part in config.components(kwokctl.state)}
        alive = await kwokctl.alive()
        if not parts or not (kwokctl.work / "etcd" / "member").is_dir():
            return ClusterState.PARTIAL if alive or (kwokctl.folder / "kwok").exists() else ClusterState.ABSENT
        return ClusterState.RUNNING if parts <= alive else ClusterState.STOPPED

    async def create(self, entry: ClusterEntry, spec: ClusterSpec, note: Note) -> CreatedCluster:
        configuration = config.read(spec.config)
        needs = await needs_of(spec, configuration, self._machine)
        if not needs.fitness.usable:
            raise PrerequisiteMissing(
                f"kwok cannot work here: {needs.fitness.text}.", next_step=needs.fitness.next_step
            )
        given = {option: configuration.options.get(option) for option in config.PORTS}
        busy = ports.taken(port for port in given.values() if isinstance(port, int) and port)
        if busy:
            names = ", ".join(f"{port} ({option})" for option, port in given.items() if port in busy)
            raise ClusterError(
                f"Ports in the --config file {str(spec.config)!r} are in use by another program: {names}.",
                next_step="choose other ports, or remove them from the file to get free ones",
            )
        if needs.downloads:
            note(needs.announcement)
        for left in reversed(range(_TRIES)):
            try:
                return await self._create(entry, spec, configuration, needs, note)
            except PortTaken as error:
                if not left:
                    raise
                note(f"{error.message} Retrying with other ports")
                await self.delete(entry, note)
        raise AssertionError("the last try returns or raises")

    async def _create(
        self,
        entry: ClusterEntry,
        spec: ClusterSpec,
        configuration: config.Configuration,
        needs: FoundPrograms,
        note: Note,
    ) -> CreatedCluster:
        kwokctl = Kwokctl(entry, self._machine)
        try:
            options = _options(kwokctl, needs)
            chosen = await ports.reserved(kwokctl.folder, config.PORTS, self._machine.clock)
            files.replace(kwokctl.config, configuration.completed({**chosen, **options}).encode())
            await kwokctl.while_alive(self._run_create(kwokctl, entry, spec, needs, note))
            content = config.self_contained(kwokctl.kubeconfig)
        except OSError as error:
            raise ClusterError(
                f"{str(error.filename or kwokctl.folder)!r} cannot be written: {error.strerror}.",
                next_step=files.state_remedy(error),
            ) from error
        return CreatedCluster(context=_context(entry), kubeconfig=content, version="", notes={"kwokctl": needs.version})

    async def _run_create(
        self, kwokctl: Kwokctl, entry: ClusterEntry, spec: ClusterSpec, needs: FoundPrograms, note: Note
    ) -> None:
        clock, nodes = self._machine.clock, _NODES if spec.nodes is None else spec.nodes
        # --wait does not limit the time of downloads.
        patience = None if needs.downloads else spec.wait
        begun = clock.elapsed()
        note("starting the control plane")
        words = ("create", "cluster", "--config", str(kwokctl.config), "--kubeconfig", "")
        await kwokctl.run(*words, note=note, timeout=patience)
        left = spec.wait if needs.downloads else max(spec.wait - (clock.elapsed() - begun), 1.0)
        named = replace(entry, context=_context(entry))
        await answering(named, self._machine, left, note, file=kwokctl.kubeconfig)
        if nodes:
            note(f"adding {nodes} node{'s' * (nodes != 1)}")
            await kwokctl.run("scale", "node", "--replicas", str(nodes), note=note, timeout=60)
        await answering(named, self._machine, left, note, nodes=nodes, file=kwokctl.kubeconfig)

    async def start(self, entry: ClusterEntry, note: Note) -> None:
        kwokctl = Kwokctl(entry, self._machine)
        parts = config.components(kwokctl.state)
        alive = await kwokctl.alive()
        ended = [part for part in parts if Path(part["binary"]).name not in alive]
        self._check_programs(kwokctl, ended)
        wanted = config.ports_of(ended)
        if busy := ports.taken(wanted):
            names = ", ".join(f"{port} ({wanted[port]})" for port in busy)
            raise ClusterError(
                f"Ports of cluster {entry.name!r} are in use by another program: {names}.",
                next_step=f"stop that program, or recreate the cluster: {recreate(entry.name)}",
            )
        for part in ended:
            # After a restart of the machine another process may have that pid, and kwokctl would take it for its own.
            (kwokctl.work / "pids" / f"{Path(part['binary']).name}.pid").unlink(missing_ok=True)

        async def started() -> None:
            await kwokctl.run("start", "cluster", note=note, timeout=_START)
            await answering(entry, self._machine, _START, note)

        await kwokctl.while_alive(started())

    def _check_programs(self, kwokctl: Kwokctl, parts: Sequence[Mapping[str, Any]]) -> None:
        """Raise if programs of these components are gone. Any kwokctl and kubectl in PATH replace the original ones."""
        kwokctl.prepare()
        links = kwokctl.folder / "bin"
        for name in ("kwokctl", "kubectl"):
            if not (links / name).exists() and (program := programs.found(name, self._machine.environ)):
                kwokctl.linked(name, program)
        needed = [links / "kwokctl", *(Path(part["binary"]) for part in parts)]
        gone = [f"{path.name} ({os.path.realpath(path)})" for path in needed if not path.exists()]
        if gone:
            raise PrerequisiteMissing(
                f"Programs of cluster {kwokctl.name!r} no longer exist: {', '.join(gone)}.",
                next_step=f"restore them, or recreate the cluster: {recreate(kwokctl.name)}",
            )

    async def load(self, entry: ClusterEntry, images: Sequence[str]) -> None:
        raise UsageError(
            f"Images cannot be loaded into a kwok cluster ({', '.join(images)}): its pods are simulated and run no "
            "images.",
            next_step="leave out --load, or use --provider kind",
        )

    async def logs(self, entry: ClusterEntry, folder: Path) -> None:
        logs = Kwokctl(entry, self._machine).work / "logs"
        try:
            shutil.copytree(logs, folder, dirs_exist_ok=True)
        except (OSError, shutil.Error) as error:
            raise ClusterError(
                f"The logs of cluster {entry.name!r} cannot be copied: {error}.",
                next_step="choose another folder with --to",
            ) from error

    async def delete(self, entry: ClusterEntry, note: Note) -> None:
        kwokctl = Kwokctl(entry, self._machine)
        await kwokctl.stop()
        try:
            kwokctl.clear()
        except OSError as error:
            raise ClusterError(
                f"{str(error.filename)!r} of cluster {entry.name!r} cannot be removed: {error.strerror}.",
                next_step=f"make it writable, then repeat: {ctrl('down', entry.name)}",
            ) from error


def _users_folder(environ: Mapping[str, str], name: str) -> Path | None:
    """The folder of a cluster of that name that the user creates with kwokctl."""
    home = environ.get("HOME")
    root = environ.get("KWOK_WORKDIR") or (f"{home}/.kwok" if home else "")
    return Path(root, "clusters", name) if root else None


def _unsupported(text: str, next_step: str) -> Fitness:
    return Fitness(usable=False, text=text, next_step=f"{next_step}, or use --provider kind", usage=True)


def _options(kwokctl: Kwokctl, needs: FoundPrograms) -> dict[str, str]:
    """kwokctl's options for programs and downloads, with paths below the alias."""
    kwokctl.prepare()
    links = {name: kwokctl.linked(name, program) for name, program in needs.links.items()}
    kwokctl.root.mkdir(exist_ok=True, mode=0o700)
    options = {option: str(links[name]) for name, option in config.OPTIONS.items() if name in links}
    if needs.downloads:
        needs.cache.mkdir(parents=True, exist_ok=True)
    return {**options, "cacheDir": str(kwokctl.linked("cache", needs.cache))}


def _context(entry: ClusterEntry) -> str:
    return f"kwok-{entry.name}"
