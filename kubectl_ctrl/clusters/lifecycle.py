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
from kubectl_ctrl.clusters.readiness import ClusterIdentity, answering
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.errors import ClusterError, CtrlError, Refused, TimedOut
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.value import Value, replace

_PACE = 0.2


@asynccontextmanager
async def lock(registry: Registry, name: str, clock: Clock, note: Note) -> AsyncIterator[None]:
    """Lock that cluster for the block, and wait while another process holds the lock."""
    noted = False
    while True:
        with registry.locked(name) as locked:
            if locked:
                yield
                return
        if not noted:
            pid = registry.holder(name)
            holder = f"process {pid}" if pid else "another process"
            note(f"waiting for {holder}, which is changing cluster {name!r}")
            noted = True
        await clock.sleep(_PACE)


async def ensure(
    registry: Registry,
    providers: Mapping[str, Provider],
    maker: str,
    name: str,
    spec: ClusterSpec,
    *,
    machine: Machine,
    note: Note,
) -> ClusterEntry:
    """Create or start the cluster if necessary, and return when its API server answers and its nodes are ready.

    The caller holds the lock. After a failure or a cancellation nothing is left of a new cluster, unless the spec keeps
    it. Refused if the name belongs to a cluster that is not managed.
    """
    provider = providers[maker]
    registry.check(name)
    found = registry.find(name)
    if found is not None and found.provider != provider.name:
        raise Refused(
            f"Cluster {name!r} was created with {found.provider}, not {provider.name}.",
            next_step=f"omit --provider, choose another --name, or delete it: {ctrl('down', name)}",
        )
    creation = _Creation(registry=registry, provider=provider, spec=spec, machine=machine, note=note)
    if found is not None and found.phase is Phase.READY:
        if await creation.restart(found):
            return found
    elif found is not None:
        note(f"cluster {name!r} was not completely {found.phase.done}: deleting it first")
    existed = await delete(registry, providers, name, note=note)
    owner = await provider.foreign(name)
    if owner:
        raise Refused(
            f"The name {name!r} is in use: {owner}.",
            next_step="choose another --name: only clusters created by kubectl ctrl are changed",
        )
    if existed:
        registry.remove(name)
    return await creation.create(name, used=found.used if found else {})


class _Creation(Value, kw_only=True):
    registry: Registry
    provider: Provider
    spec: ClusterSpec
    machine: Machine
    note: Note

    async def restart(self, entry: ClusterEntry) -> bool:
        """Start the cluster of a complete entry if it is stopped; False if nothing is left of it.

        An incomplete cluster may still have the user's objects, so it is never recreated without a question.
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
            self.note(f"cluster {entry.name!r} is stopped: starting it")
            try:
                await self.provider.start(entry, self.note)
            except TimedOut as error:
                again = ctrl("up", "--name", entry.name)
                error.next_step = f"check its logs: {ctrl('cluster', 'logs', entry.name)}; or try again: {again}"
                raise
        # In a running cluster the user may have stopped nodes on purpose, so only the API server is checked.
        await self._answering(entry, nodes=0 if state is ClusterState.STOPPED else None)
        return True

    async def create(self, name: str, used: Mapping[str, str]) -> ClusterEntry:
        """`used` has the changes of --use for an earlier cluster of that name, which are not undone yet."""
        entry = ClusterEntry(
            name=name,
            provider=self.provider.name,
            phase=Phase.CREATING,
            began=self.machine.clock.now(),
            folder=self.registry.place(name),
            used=used,
        )
        try:
            self.registry.write(entry)
            return await self._create(entry)
        except BaseException as error:
            if isinstance(error, TimedOut):
                error.next_step = "use --keep-on-failure to inspect it, or wait longer: --wait 10m"
            if not self.spec.keep_on_failure:
                await self._delete(entry, error)
            elif isinstance(error, CtrlError):
                error.next_step = f"check {str(entry.folder)!r}; to delete it: {ctrl('down', entry.name)}"
            raise

    async def _create(self, entry: ClusterEntry) -> ClusterEntry:
        created = await self.provider.create(entry, self.spec, self.note)
        entry = replace(entry, context=created.context, notes=created.notes)
        self.registry.write_kubeconfig(entry, created.kubeconfig)
        known = await self._answering(entry, nodes=0 if self.spec.nodes == 0 else 1)
        entry = replace(
            entry, phase=Phase.READY, server=known.server, ca=known.ca, uid=known.uid, version=known.version
        )
        self.registry.write(entry)
        return entry

    async def _answering(self, entry: ClusterEntry, *, nodes: int | None) -> ClusterIdentity:
        try:
            return await answering(entry, self.machine, self.spec.wait, self.note, nodes=nodes)
        except TimedOut as error:
            if entry.phase is Phase.READY:
                error.next_step = f"check its logs: {ctrl('cluster', 'logs', entry.name)}; or wait longer: --wait 10m"
            raise

    async def _delete(self, entry: ClusterEntry, error: BaseException) -> None:
        """Delete everything after that error. If this fails, the entry is kept, and the error reports that.

        The entry is also kept while changes of --use are not undone, so that `down` can undo them.
        """
        self.note("deleting the incomplete cluster")
        try:
            await self.provider.delete(entry, self.note)
            if not entry.used:
                self.registry.remove(entry.name)
        except CtrlError as failure:
            if isinstance(error, CtrlError):
                error.tried = f"deleting it failed: {failure.message}"
                error.next_step = f"delete the rest of it: {ctrl('down', entry.name)}"


def _incomplete(entry: ClusterEntry, what: str) -> ClusterError:
    return ClusterError(
        f"Cluster {entry.name!r} is incomplete, {what}, and recreating it would delete everything in it.",
        next_step=f"recreate it anyway: {recreate(entry.name)}",
    )


async def delete(registry: Registry, providers: Mapping[str, Provider], name: str, *, note: Note) -> bool:
    """Delete everything but the cluster's folder; False if there was no cluster of that name.

    The caller holds the lock, and calls `registry.remove` at last: until then the deletion can be repeated.
    """
    entry = registry.find(name)
    if entry is None:
        exists = await _delete_without_entry(registry, providers, name, note)
        await _check_unreadable(registry, providers, name)
        return exists
    provider = providers.get(entry.provider)
    if provider is None:
        raise ClusterError(
            f"Cluster {name!r} was created with {entry.provider!r}, which this version does not support.",
            next_step="delete it with the version that created it",
        )
    # A full disk must not prevent the deletion. If it is interrupted, the cluster is found to be incomplete even
    # without the new phase.
    with suppress(CtrlError):
        registry.write(replace(entry, phase=Phase.DELETING))
    await provider.delete(replace(entry, phase=Phase.DELETING), note)
    return True


async def _delete_without_entry(registry: Registry, providers: Mapping[str, Provider], name: str, note: Note) -> bool:
    """Delete what each provider finds through the folder alone; False without a folder."""
    place = registry.place(name)
    if not place.is_dir():
        return False
    note(f"stopping processes known from {str(place)!r}")
    for provider in providers.values():
        await provider.delete(registry.unread(name), note)
    return True


async def _check_unreadable(registry: Registry, providers: Mapping[str, Provider], name: str) -> None:
    """Raise if the entry cannot be read, and there is a cluster to which it may belong."""
    try:
        registry.check(name)
    except ClusterError as unread:
        for provider in providers.values():
            owner = ""
            with suppress(CtrlError):  # a provider that does not work here has no clusters
                owner = await provider.foreign(name)
            if owner:
                unread.tried = owner
                folder = str(registry.place(name))
                unread.next_step = f"if it is the same cluster, delete it with {provider.name}; then remove {folder!r}"
                raise
