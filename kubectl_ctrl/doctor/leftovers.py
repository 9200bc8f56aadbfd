"""Leftovers of kubectl ctrl on this machine and on the cluster, each with its removal.

`doctor` lists them, and `doctor --fix` removes them, except those that may still be in use: the user decides on these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from kubectl_ctrl import locks
from kubectl_ctrl.client.options import DeleteOptions, ListQuery
from kubectl_ctrl.clusters import current_context, names
from kubectl_ctrl.clusters.provider import ClusterState
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry, locked_file
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.devcluster.down import deleted
from kubectl_ctrl.devcluster.steps import Silent
from kubectl_ctrl.doctor.checks import CheckInput, ConnectedCluster, info, ok, warn
from kubectl_ctrl.doctor.diagnosis import Line
from kubectl_ctrl.errors import ClusterError, CtrlError, Forbidden, NotFound, TimedOut, UsageError
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.install.marks import MANAGED_BY, NAME, US
from kubectl_ctrl.kubeconfig.lock import remove_stale
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Obj, labels_of, name_of, namespace_of, uid_of, version_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, LEASES, Resource
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.processes import of_module
from kubectl_ctrl.runs import background, holder, runners, termination
from kubectl_ctrl.runs.instances import LONG_PAST, leases_of, look, overdue
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.runs.takeover import UnrestoredDeployment, by_hand, repair_of, repairs
from kubectl_ctrl.runs.termination import LiveProcess
from kubectl_ctrl.target.choice import kubectl_at
from kubectl_ctrl.value import Unshown, Value

_OURS = f"{MANAGED_BY}={US}"
_WEBHOOKS = tuple(
    Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
)
# Seconds for a controller to finish its reconciles on a cluster that is gone.
_DRAIN = 5.0
# Seconds for a provider to report the state of a cluster; less than the timeout of a check.
_ASKING = 3.0

# Removes a leftover; returns the result as a clause.
Mend = Callable[[], Awaitable[str]]


class Leftover(Value, kw_only=True):
    """One leftover. Without `mend`, only the user can remove it."""

    check: str
    text: str
    command: str = ""
    advice: str = ""
    mend: Unshown[Mend | None] = None
    destroys: bool = False  # its removal needs --yes
    remote: bool = False  # its removal changes a cluster

    @property
    def line(self) -> Line:
        return warn(self.check, self.text, advice=self.advice, command=self.command)


async def machine(bench: CheckInput) -> Sequence[Line]:
    found = await local_leftovers(bench)
    return [one.line for one in found] or [ok("machine", "no leftovers on this machine")]


async def cluster(bench: CheckInput) -> Sequence[Line]:
    found = await cluster_leftovers(bench, await bench.reach.reached())
    lines = [one.line for one in found.left]
    if found.hidden:
        text = f"not everything can be checked with these credentials: {', '.join(found.hidden)}"
        return [*lines, info("cluster", text)]
    return lines or [ok("cluster", "no leftovers on the cluster")]


# On this machine.


async def local_leftovers(bench: CheckInput) -> list[Leftover]:
    registry = bench.registry
    known = await asyncio.gather(*(_entry(bench, entry) for entry in registry.entries()))
    return [
        *(one for one in known if one is not None),
        *_folders(bench),
        *_locks(registry),
        *_processes(bench),
        *_kubeconfig_locks(bench),
    ]


async def _entry(bench: CheckInput, entry: ClusterEntry) -> Leftover | None:
    """A cluster that is not complete and running, unless a process is changing it right now."""
    if _changing(bench.registry, entry.name):
        return None
    head = f"cluster {entry.name} ({entry.provider})"
    if entry.phase is not Phase.READY:
        return _cluster(bench, entry.name, f"{head} was not completely {entry.phase.done}")
    try:
        state = await _state(bench, entry)
    except CtrlError as error:
        text = f"{head}: its state is unknown: {error.message.rstrip('.')}"
        return Leftover(check="clusters", text=text, advice=error.next_step)
    if state in (ClusterState.ABSENT, ClusterState.PARTIAL):
        lost = (
            "no longer exists, but its files do"
            if state is ClusterState.ABSENT
            else "is incomplete: parts of it are missing"
        )
        used = f"; --use added it to {entry.used['file']}" if entry.used.get("file") else ""
        return _cluster(bench, entry.name, f"{head} {lost}{used}")
    if state is ClusterState.STOPPED:
        command = str(names.up(entry.name))
        return Leftover(check="clusters", text=f"{head} is stopped; this starts it", command=command)
    return None


async def _state(bench: CheckInput, entry: ClusterEntry) -> ClusterState:
    provider = bench.providers.get(entry.provider)
    if provider is None:
        raise ClusterError(
            f"This version does not support the provider {entry.provider!r}.",
            next_step="use the version that created it",
        )
    try:
        async with bench.clock.timeout(_ASKING):
            return await provider.state(entry)
    except TimeoutError:
        raise TimedOut(f"The programs of {entry.provider} did not answer within {_ASKING:g} s.") from None


def _cluster(bench: CheckInput, name: str, text: str) -> Leftover:
    registry = bench.registry

    def current() -> ClusterEntry | None:
        return next((entry for entry in registry.entries() if entry.name == name), None)

    seen = current()

    async def delete() -> str:
        if _changing(registry, name) or current() != seen:
            return "it is kept, since another process has changed it"
        await deleted(bench.user, name, bench.clock, Silent(bench.narrate))
        return f"cluster {name} is deleted"

    command = str(names.down(name))
    return Leftover(check="clusters", text=text, command=command, mend=delete, destroys=True)


def _folders(bench: CheckInput) -> Iterable[Leftover]:
    """Folders of clusters whose entry cannot be read, unless a process is changing the cluster right now."""
    for path in bench.registry.damaged():
        if _changing(bench.registry, path.name):
            continue
        text = f"the folder {path} belongs to no cluster"
        try:
            bench.registry.check(path.name)
        except UsageError:
            yield Leftover(check="clusters", text=text, command=str(command("rm", "-r", path)))
        except ClusterError as error:
            yield _cluster(bench, path.name, error.message.rstrip("."))
        else:
            yield _cluster(bench, path.name, text)


def _locks(registry: Registry) -> Iterable[Leftover]:
    """Lock files of killed processes: the kernel releases the lock, but the file remains."""
    for path in sorted(registry.folder.glob("*.lock")):
        if locks.is_held(path):
            continue

        async def remove(path: Path = path) -> str:
            with locked_file(path):  # its release deletes the file
                return "it is deleted"

        remedy = str(command("rm", str(path)))
        yield Leftover(check="locks", text=f"no process holds the lock file {path}", command=remedy, mend=remove)


def _changing(registry: Registry, name: str) -> bool:
    return locks.is_held(registry.folder / f"{name}.lock")


def _processes(bench: CheckInput) -> Iterable[Leftover]:
    """Controllers that still run for a deleted managed cluster."""
    for live in _orphans(bench):

        async def stop(pid: int = live.pid) -> str:
            def found() -> list[LiveProcess]:
                return [one for one in _orphans(bench) if one.pid == pid]

            await termination.ended(found, _DRAIN, bench.clock, bench.narrate, kill=True)
            return "it has stopped"

        text = f"{live} still runs for a managed cluster that is deleted"
        yield Leftover(check="processes", text=text, command=f"kill {live.pid}", mend=stop)


def _orphans(bench: CheckInput) -> list[LiveProcess]:
    """Processes of runs on a deleted cluster, and those that write the log of a cluster that is not registered."""
    registry, found = bench.registry, runners.runners(bench.user.state)
    gone = _deleted(bench) if found else frozenset()
    named = {one.pid: one.controllers for one in found}
    lost = {one.pid for one in found if one.cluster in gone and holder.is_here(one.holder)}
    lost |= set(of_module(background.MODULE, registry.folder, below=True))
    entries = (registry.find(name) or registry.unread(name) for name in names.names(registry))
    known = {pid for entry in entries for pid in background.starting(entry)}
    return [LiveProcess(pid=pid, controllers=named.get(pid, ("a controller",))) for pid in sorted(lost - known)]


def _deleted(bench: CheckInput) -> frozenset[str]:
    """The managed clusters whose deletion is recorded."""
    try:
        with opened(recording_file(bench.user), bench.clock.now()) as recording:
            return frozenset(one.key for one in recording.clusters() if one.ended is not None)
    except CtrlError:
        return frozenset()


def _kubeconfig_locks(bench: CheckInput) -> Iterable[Leftover]:
    for lock in current_context.stale_locks(bench.user):

        async def remove(lock: current_context.StaleLock = lock) -> str:
            if remove_stale(lock.path, lock.seen):
                return f"{lock.path} is deleted"
            return "it is kept, since another program has taken or deleted it"

        text = f"{lock.path} has locked the kubeconfig for {format_duration(round(lock.age))}"
        remedy = str(command("rm", str(lock.path)))
        yield Leftover(check="kubeconfig", text=text, command=remedy, mend=remove, destroys=True)


# On the cluster.


class FoundLeftovers(Value, kw_only=True):
    """The leftovers on a cluster, and the kinds of objects that we may not list."""

    left: tuple[Leftover, ...] = ()
    hidden: tuple[str, ...] = ()


async def cluster_leftovers(bench: CheckInput, there: ConnectedCluster) -> FoundLeftovers:
    parts = await asyncio.gather(_takeovers(bench, there), _leases(there), _webhooks(bench, there))
    return FoundLeftovers(
        left=tuple(one for part in parts for one in part.left),
        hidden=tuple(text for part in parts for text in part.hidden),
    )


async def _takeovers(bench: CheckInput, there: ConnectedCluster) -> FoundLeftovers:
    running = {runner.holder for runner in runners.runners(bench.user.state)}
    hidden: tuple[str, ...] = ()
    try:
        listed = (await there.client.list(DEPLOYMENTS, ListQuery(labels=_OURS))).items
        found = [repair for one in listed if (repair := repair_of(one))]
    except Forbidden:
        hidden = (f"{DEPLOYMENTS} in other namespaces than those of the controllers",)
        found = await repairs(there.client, list(BUNDLED))
    return FoundLeftovers(left=tuple(_takeover(there, one) for one in found if not one.goes_on(running)), hidden=hidden)


def _takeover(there: ConnectedCluster, repair: UnrestoredDeployment) -> Leftover:
    taken = repair.taken
    command = by_hand(taken.ref, taken.replicas, kubectl_at(there.resolved))

    async def restore() -> str:
        count = await repair.restore(there.client)
        if count is None:
            return f"{taken.ref} is deleted, or already restored"
        return f"{taken.ref} is scaled back to {count}"

    if repair.certain:
        return Leftover(check="takeovers", text=repair.text.rstrip("."), command=command, mend=restore, remote=True)
    return Leftover(
        check="takeovers", text=taken.text, advice="that run may still be active; if it is not:", command=command
    )


async def _leases(there: ConnectedCluster) -> FoundLeftovers:
    """Leases whose holder was killed, or has not renewed them for long."""
    hidden: tuple[str, ...] = ()
    try:
        found = list((await there.client.list(LEASES, ListQuery(labels=_OURS))).items)
    except Forbidden:
        hidden = (f"{LEASES} in other namespaces than those of the controllers",)
        seen = await asyncio.gather(*(leases_of(there.client, name) for name in BUNDLED))
        found = [one for objects in seen for one in objects.objects]
    now = there.client.clock.now()
    return FoundLeftovers(
        left=tuple(_lease(there, one, why) for one in found if (why := _abandoned(one, now))), hidden=hidden
    )


def _abandoned(lease: Obj, now: float) -> str:
    """The holder, and the reason why it counts as gone; "" if it may be active, or if there is none."""
    spec = lease.get("spec") or {}
    who = str(spec.get("holderIdentity") or "")
    if not who:
        return ""
    if holder.is_dead(who):
        return f"process {holder.pid_of(who)} on this machine, which has exited"
    late = overdue(lease, now)
    if late is None or late < LONG_PAST:
        return ""
    return f"{who}, which should have renewed it {format_duration(round(late))} ago"


def _lease(there: ConnectedCluster, lease: Obj, why: str) -> Leftover:
    name, space = name_of(lease), namespace_of(lease)

    async def delete() -> str:
        options = DeleteOptions(uid=uid_of(lease), version=version_of(lease))
        await there.client.delete(LEASES.ref(name, space), options)
        return f"Lease {space}/{name} is deleted"

    remedy = str(command(*kubectl_at(there.resolved), "delete", "lease", name, "--namespace", space))
    text = f"Lease {space}/{name} is held by {why}"
    return Leftover(check="leases", text=text, command=remedy, mend=delete, remote=True)


async def _webhooks(bench: CheckInput, there: ConnectedCluster) -> FoundLeftovers:
    """Configurations with our label whose controller does not run: the server calls a webhook that does not answer."""
    left: list[Leftover] = []
    hidden: list[str] = []
    for resource in _WEBHOOKS:
        try:
            found = (await there.client.list(resource, ListQuery(labels=_OURS))).items
        except Forbidden:
            hidden.append(str(resource))
            continue
        except NotFound:
            continue
        for one in found:
            controller = labels_of(one).get(NAME, "")
            seen = await look(there.client, state_dir=bench.user.state, cluster=there.cluster, name=controller)
            if not seen.places and not seen.unseen:
                left.append(_webhook(there, resource, one, controller))
    return FoundLeftovers(left=tuple(left), hidden=tuple(hidden))


def _webhook(there: ConnectedCluster, resource: Resource, obj: Obj, controller: str) -> Leftover:
    name = name_of(obj)

    async def delete() -> str:
        await there.client.delete(resource.ref(name), DeleteOptions(uid=uid_of(obj), version=version_of(obj)))
        return f"{resource.kind} {name} is deleted"

    remedy = str(command(*kubectl_at(there.resolved), "delete", resource.full_name, name))
    text = f"{resource.kind} {name} exists, but {controller or 'its controller'} does not run"
    return Leftover(check="webhooks", text=text, command=remedy, mend=delete, destroys=True, remote=True)
