"""Creates, starts and deletes a cluster, with any provider.

The registry is written first: an entry with phase `creating` exists before any part of the cluster, and phase
`deleting` is written before the first part is deleted. So after a kill at any point, the next command finds the rest.
A cluster that was not completely created is deleted and created again: there is no repair to get wrong.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, Machine, Note, Provider, recreate
from kubectl_ctrl.clusters.readiness import Known, answering
from kubectl_ctrl.clusters.registry import Entry, Phase, Registry
from kubectl_ctrl.errors import ClusterError, CtrlError, Refused, TimedOut
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.value import Value, replace

_PACE = 0.2


@asynccontextmanager
async def held(registry: Registry, name: str, clock: Clock, note: Note) -> AsyncIterator[None]:
    """Hold the right to change that cluster, for the block, once no other process has it."""
    told = False
    while True:
        with registry.locked(name) as ours:
            if ours:
                yield
                return
        if not told:
            note(f"waiting for {_holder(registry, name)}, which is changing cluster {name!r}")
            told = True
        await clock.sleep(_PACE)


def _holder(registry: Registry, name: str) -> str:
    pid = registry.holder(name)
    return f"process {pid}" if pid else "another process"


async def raised(
    registry: Registry,
    providers: Mapping[str, Provider],
    word: str,
    name: str,
    spec: ClusterSpec,
    *,
    machine: Machine,
    note: Note,
) -> Entry:
    """There, answering, with its nodes ready: made, started again, or found so. The caller holds the cluster.

    The provider of that word makes it; the others know what they have left under that name. Failed or cancelled,
    nothing of it stays, unless the spec keeps it. Refused where the name is somebody else's.
    """
    provider = providers[word]
    registry.check(name)
    found = registry.find(name)
    if found is not None and found.provider != provider.name:
        raise Refused(
            f"Cluster {name!r} was created with {found.provider}, not {provider.name}.",
            next_step=f"omit --provider, choose another --name, or delete it: {ctrl('down', name)}",
        )
    making = _Making(registry=registry, provider=provider, spec=spec, machine=machine, note=note)
    if found is not None and found.phase is Phase.READY:
        if await making.stood_up(found):
            return found
    elif found is not None:
        note(f"cluster {name!r} was not completely {found.phase.done}: deleting it first")
    there = await removed(registry, providers, name, note=note)
    owner = await provider.foreign(name)
    if owner:
        raise Refused(
            f"The name {name!r} is in use: {owner}.",
            next_step="choose another --name: only clusters created by kubectl ctrl are changed",
        )
    if there:
        registry.remove(name)
    return await making.made(name, used=found.used if found else {})


class _Making(Value, kw_only=True):
    """How one cluster is had."""

    registry: Registry
    provider: Provider
    spec: ClusterSpec
    machine: Machine
    note: Note

    async def stood_up(self, entry: Entry) -> bool:
        """Whether the cluster of a complete page runs now; False where nothing is left of it.

        What its user has put into one that is incomplete is not ours to give up.
        """
        state = await self.provider.state(entry)
        if state is ClusterState.ABSENT:
            self.note(f"cluster {entry.name!r} is gone: recreating it")
            return False
        if state is ClusterState.PARTIAL:
            raise _incomplete(entry, "parts of it are missing")
        if not entry.kubeconfig.is_file():
            raise _incomplete(entry, "its kubeconfig is missing")
        if state is ClusterState.STOPPED:
            await self._started(entry)
        # Of what runs, the nodes are its user's business: only a server that answers is asked for.
        await self._settled(entry, nodes=0 if state is ClusterState.STOPPED else None)
        return True

    async def _started(self, entry: Entry) -> None:
        self.note(f"cluster {entry.name!r} is stopped: starting it")
        try:
            await self.provider.start(entry, self.note)
        except TimedOut as error:
            name = entry.name
            error.next_step = (
                f"check its logs: {ctrl('cluster', 'logs', name)}; or try again: {ctrl('up', '--name', name)}"
            )
            raise

    async def made(self, name: str, used: Mapping[str, str]) -> Entry:
        """`used` is what --use changed for one of that name, which is still to be undone."""
        entry = Entry(
            name=name,
            provider=self.provider.name,
            phase=Phase.CREATING,
            began=self.machine.clock.now(),
            folder=self.registry.place(name),
            used=used,
        )
        try:
            self.registry.write(entry)
            return await self._completed(entry)
        except BaseException as error:
            if isinstance(error, TimedOut):
                error.next_step = "use --keep-on-failure to inspect it, or wait longer: --wait 10m"
            if self.spec.keep_on_failure:
                _tell_where(error, entry)
            else:
                await self._forgotten(entry, error)
            raise

    async def _completed(self, entry: Entry) -> Entry:
        made = await self.provider.create(entry, self.spec, self.note)
        entry = replace(entry, context=made.context, notes=made.notes)
        self.registry.write_kubeconfig(entry, made.kubeconfig)
        known = await self._settled(entry, nodes=0 if self.spec.nodes == 0 else 1)
        entry = replace(
            entry, phase=Phase.READY, server=known.server, ca=known.ca, uid=known.uid, version=known.version
        )
        self.registry.write(entry)
        return entry

    async def _settled(self, entry: Entry, *, nodes: int | None) -> Known:
        try:
            return await answering(entry, self.machine, self.spec.wait, self.note, nodes=nodes)
        except TimedOut as error:
            if entry.phase is Phase.READY:
                error.next_step = f"check its logs: {ctrl('cluster', 'logs', entry.name)}; or wait longer: --wait 10m"
            raise

    async def _forgotten(self, entry: Entry, error: BaseException) -> None:
        """Nothing of it is left. Where that fails, its page stays, and the error says so.

        It stays also where --use is still to be undone, for `down` to do it.
        """
        self.note("deleting the incomplete cluster")
        try:
            await self.provider.delete(entry, self.note)
            if not entry.used:
                self.registry.remove(entry.name)
        except CtrlError as left:
            if isinstance(error, CtrlError):
                error.tried = f"deleting it failed: {left.message}"
                error.next_step = f"delete the rest of it: {ctrl('down', entry.name)}"


def _incomplete(entry: Entry, what: str) -> ClusterError:
    return ClusterError(
        f"Cluster {entry.name!r} is incomplete, {what}, and recreating it would delete everything in it.",
        next_step=f"recreate it anyway: {recreate(entry.name)}",
    )


def _tell_where(error: BaseException, entry: Entry) -> None:
    if isinstance(error, CtrlError):
        error.next_step = f"check {str(entry.folder)!r}; to delete it: {ctrl('down', entry.name)}"


async def removed(registry: Registry, providers: Mapping[str, Provider], name: str, *, note: Note) -> bool:
    """Nothing of the cluster runs any more; False when there was none. The caller holds the cluster, and ends with
    `registry.remove`: until then the page stays, and what is left can be taken away again.
    """
    entry = registry.find(name)
    if entry is None:
        there = await _swept(registry, providers, name, note)
        await _check_nobodys(registry, providers, name)
        return there
    provider = providers.get(entry.provider)
    if provider is None:
        raise ClusterError(
            f"Cluster {name!r} was created with {entry.provider!r}, which this version does not support.",
            next_step="delete it with the version that created it",
        )
    # A full disk must not keep a cluster: without the mark a later look finds it incomplete.
    with suppress(CtrlError):
        registry.write(replace(entry, phase=Phase.DELETING))
    await provider.delete(replace(entry, phase=Phase.DELETING), note)
    return True


async def _swept(registry: Registry, providers: Mapping[str, Provider], name: str, note: Note) -> bool:
    """What each of them knows by the folder alone, where its page is gone or cannot be read; False without a folder."""
    place = registry.place(name)
    if not place.is_dir():
        return False
    note(f"stopping processes known from {str(place)!r}")
    for provider in providers.values():
        await provider.delete(registry.unread(name), note)
    return True


async def _check_nobodys(registry: Registry, providers: Mapping[str, Provider], name: str) -> None:
    """Raise where there is a page that cannot be read, and a cluster that it may have been about."""
    try:
        registry.check(name)
    except ClusterError as unread:
        for provider in providers.values():
            owner = ""
            with suppress(CtrlError):  # what cannot be asked knows of none
                owner = await provider.foreign(name)
            if owner:
                unread.tried = owner
                folder = str(registry.place(name))
                unread.next_step = f"if it is the same cluster, delete it with {provider.name}; then remove {folder!r}"
                raise
