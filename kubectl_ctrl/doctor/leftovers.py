"""What is left of us where nothing should be: on this machine and on the cluster, each with what takes it away.

`doctor` tells of it, and `doctor --fix` does it. What may still be somebody's is left to a person.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from kubectl_ctrl import locks
from kubectl_ctrl.client.options import DeleteOptions, ListQuery
from kubectl_ctrl.clusters import current_context, names
from kubectl_ctrl.clusters.provider import ClusterState
from kubectl_ctrl.clusters.registry import Entry, Phase, Registry, locked_file
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.devcluster.down import deleted
from kubectl_ctrl.devcluster.steps import Silent
from kubectl_ctrl.doctor.checks import Bench, Reached, info, ok, warn
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
from kubectl_ctrl.runs import background, holder, termination
from kubectl_ctrl.runs import runners as runlock
from kubectl_ctrl.runs.instances import LONG_PAST, leases_of, look, overdue
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.runs.takeover import Repair, by_hand, repair_of, repairs
from kubectl_ctrl.runs.termination import Live
from kubectl_ctrl.target.choice import kubectl_at
from kubectl_ctrl.value import Unshown, Value

_OURS = f"{MANAGED_BY}={US}"
_WEBHOOKS = tuple(
    Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced=False)
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
)
# Seconds for a controller to finish what is under way, on a cluster that is gone.
_DRAIN = 5.0
# Seconds for a container runtime to say how a cluster stands; less than a check has.
_ASKING = 3.0

# Takes it away; gives what was done, as a clause.
Mend = Callable[[], Awaitable[str]]


class Leftover(Value, kw_only=True):
    """One thing that is left, and how it goes; without `mend` only by hand."""

    check: str
    text: str
    command: str = ""
    advice: str = ""
    mend: Unshown[Mend | None] = None
    destroys: bool = False  # something that a person may want to see first
    remote: bool = False  # what takes it away changes a cluster

    @property
    def line(self) -> Line:
        return warn(self.check, self.text, advice=self.advice, command=self.command)


async def machine(bench: Bench) -> Sequence[Line]:
    found = await left_here(bench)
    return [one.line for one in found] or [ok("machine", "nothing is left behind on this machine")]


async def cluster(bench: Bench) -> Sequence[Line]:
    found = await left_there(bench, await bench.reach.reached())
    lines = [one.line for one in found.left]
    if found.hidden:
        text = f"with these credentials not all may be looked at: {', '.join(found.hidden)}"
        return [*lines, info("cluster", text)]
    return lines or [ok("cluster", "nothing is left behind on the cluster")]


# On this machine.


async def left_here(bench: Bench) -> list[Leftover]:
    registry = bench.registry
    known = await asyncio.gather(*(_entry(bench, entry) for entry in registry.entries()))
    return [
        *(one for one in known if one is not None),
        *_pages(bench),
        *_locks(registry),
        *_processes(bench),
        *_kubeconfig_locks(bench),
    ]


async def _entry(bench: Bench, entry: Entry) -> Leftover | None:
    """A cluster that is not all there, and that no process is changing right now."""
    if _changing(bench.registry, entry.name):
        return None
    head = f"cluster {entry.name} ({entry.provider})"
    if entry.phase is Phase.CREATING:
        return _cluster(bench, entry.name, f"{head} was not made to the end")
    if entry.phase is Phase.DELETING:
        return _cluster(bench, entry.name, f"{head} was not taken away to the end")
    try:
        state = await _state(bench, entry)
    except CtrlError as error:
        text = f"{head}: how it stands is not known: {error.message.rstrip('.')}"
        return Leftover(check="clusters", text=text, advice=error.next_step)
    if state in (ClusterState.ABSENT, ClusterState.PARTIAL):
        lost = (
            "no longer exists, but its files do"
            if state is ClusterState.ABSENT
            else "is incomplete: parts of it are missing"
        )
        used = f"; {entry.used['file']} still has it, by --use" if entry.used.get("file") else ""
        return _cluster(bench, entry.name, f"{head} {lost}{used}")
    if state is ClusterState.STOPPED:
        command = str(names.up(entry.name))
        return Leftover(check="clusters", text=f"{head} is stopped; this starts it again", command=command)
    return None


async def _state(bench: Bench, entry: Entry) -> ClusterState:
    provider = bench.providers.get(entry.provider)
    if provider is None:
        raise ClusterError(
            f"This version does not know {entry.provider!r}.", next_step=("use the version that created it")
        )
    try:
        async with bench.clock.timeout(_ASKING):
            return await provider.state(entry)
    except TimeoutError:
        raise TimedOut(f"What {entry.provider} works with did not answer within {_ASKING:g} s.") from None


def _cluster(bench: Bench, name: str, text: str) -> Leftover:
    registry = bench.registry

    def page() -> Entry | None:
        return next((entry for entry in registry.entries() if entry.name == name), None)

    seen = page()

    async def taken_down() -> str:
        if _changing(registry, name) or page() != seen:
            return "it is left alone, as another process has seen to it"
        await deleted(bench.user, name, bench.clock, Silent())
        return f"cluster {name} is taken away"

    command = str(names.down(name))
    return Leftover(check="clusters", text=text, command=command, mend=taken_down, destroys=True)


def _pages(bench: Bench) -> Iterable[Leftover]:
    """Folders of clusters whose page cannot be read, unless one is being written right now."""
    for path in bench.registry.damaged():
        if _changing(bench.registry, path.name):
            continue
        text = f"{path} says of no cluster that it is its folder"
        try:
            bench.registry.check(path.name)
        except UsageError:
            yield Leftover(check="clusters", text=text, command=str(command("rm", "-r", path)))
        except ClusterError as error:
            yield _cluster(bench, path.name, error.message.rstrip("."))
        else:
            yield _cluster(bench, path.name, text)


def _locks(registry: Registry) -> Iterable[Leftover]:
    """What a killed process left; a lock goes with its holder, and the file does not."""
    for path in sorted(registry.folder.glob("*.lock")):
        if locks.is_held(path):
            continue

        async def removed(path: Path = path) -> str:
            with locked_file(path):  # which takes the file away
                return "it is removed"

        remedy = str(command("rm", str(path)))
        yield Leftover(check="locks", text=f"nobody holds the lock file {path}", command=remedy, mend=removed)


def _changing(registry: Registry, name: str) -> bool:
    return locks.is_held(registry.folder / f"{name}.lock")


def _processes(bench: Bench) -> Iterable[Leftover]:
    """Controllers that run on for a cluster of ours that is gone."""
    for live in _astray(bench):

        async def ended(pid: int = live.pid) -> str:
            def found() -> list[Live]:
                return [one for one in _astray(bench) if one.pid == pid]

            await termination.ended(found, _DRAIN, bench.clock, bench.narrate, kill=True)
            return "it has ended"

        text = f"{live} runs on for a cluster of ours that is gone"
        yield Leftover(check="processes", text=text, command=f"kill {live.pid}", mend=ended)


def _astray(bench: Bench) -> list[Live]:
    """Processes of runs on a deleted cluster, and those that write the log of a cluster that is not registered."""
    registry, runners = bench.registry, runlock.runners(bench.user.state)
    gone = _deleted(bench) if runners else frozenset()
    named = {one.pid: one.controllers for one in runners}
    lost = {one.pid for one in runners if one.cluster in gone and holder.is_here(one.holder)}
    lost |= set(of_module(background.MODULE, registry.folder, below=True))
    there = (registry.find(name) or registry.unread(name) for name in names.names(registry))
    known = {pid for entry in there for pid in background.starting(entry)}
    return [Live(pid=pid, controllers=named.get(pid, ("a controller",))) for pid in sorted(lost - known)]


def _deleted(bench: Bench) -> frozenset[str]:
    """The clusters of ours that were deleted, as recordings know them."""
    try:
        with opened(recording_file(bench.user), bench.clock.now()) as recording:
            return frozenset(one.key for one in recording.clusters() if one.ended is not None)
    except CtrlError:
        return frozenset()


def _kubeconfig_locks(bench: Bench) -> Iterable[Leftover]:
    for lock in current_context.stale_locks(bench.user):

        async def removed(lock: current_context.StaleLock = lock) -> str:
            if remove_stale(lock.path, lock.seen):
                return f"{lock.path} is removed"
            return "it is left alone, as another program has taken or removed it since"

        text = f"{lock.path} keeps everybody from changing the kubeconfig, for {format_duration(round(lock.age))} now"
        remedy = str(command("rm", str(lock.path)))
        yield Leftover(check="kubeconfig", text=text, command=remedy, mend=removed, destroys=True)


# On the cluster.


class Found(Value, kw_only=True):
    """What is left on a cluster, and what of it may not be looked at."""

    left: tuple[Leftover, ...] = ()
    hidden: tuple[str, ...] = ()


async def left_there(bench: Bench, there: Reached) -> Found:
    parts = await asyncio.gather(_takeovers(bench, there), _leases(there), _webhooks(bench, there))
    return Found(
        left=tuple(one for part in parts for one in part.left),
        hidden=tuple(text for part in parts for text in part.hidden),
    )


async def _takeovers(bench: Bench, there: Reached) -> Found:
    running = {runner.holder for runner in runlock.runners(bench.user.state)}
    hidden: tuple[str, ...] = ()
    try:
        listed = (await there.client.list(DEPLOYMENTS, ListQuery(labels=_OURS))).items
        found = [repair for one in listed if (repair := repair_of(one))]
    except Forbidden:
        hidden = (f"{DEPLOYMENTS} of other namespaces than the controllers'",)
        found = await repairs(there.client, list(BUNDLED))
    return Found(left=tuple(_scar(there, one) for one in found if not one.goes_on(running)), hidden=hidden)


def _scar(there: Reached, repair: Repair) -> Leftover:
    taken = repair.taken
    command = by_hand(taken.ref, taken.replicas, kubectl_at(there.resolved))

    async def restored() -> str:
        count = await repair.restore(there.client)
        return f"{taken.ref} is gone, or restored by somebody" if count is None else f"{taken.ref} is back at {count}"

    if repair.certain:
        return Leftover(check="takeovers", text=repair.text.rstrip("."), command=command, mend=restored, remote=True)
    return Leftover(
        check="takeovers", text=taken.text, advice="that run may go on; if it is gone for sure:", command=command
    )


async def _leases(there: Reached) -> Found:
    """Those whose holder is gone: it was killed, or nobody renewed it for long."""
    hidden: tuple[str, ...] = ()
    try:
        found = list((await there.client.list(LEASES, ListQuery(labels=_OURS))).items)
    except Forbidden:
        hidden = (f"{LEASES} of other namespaces than the controllers'",)
        seen = await asyncio.gather(*(leases_of(there.client, name) for name in BUNDLED))
        found = [one for objects in seen for one in objects.objects]
    now = there.client.clock.now()
    return Found(left=tuple(_lease(there, one, why) for one in found if (why := _over(one, now))), hidden=hidden)


def _over(lease: Obj, now: float) -> str:
    """Why its holder is gone; "" where it may live, or where there is none."""
    spec = lease.get("spec") or {}
    who = str(spec.get("holderIdentity") or "")
    if not who:
        return ""
    if holder.is_dead(who):
        return f"process {holder.pid_of(who)} on this machine, which is gone"
    late = overdue(lease, now)
    if late is None or late < LONG_PAST:
        return ""
    return f"{who}, which should have renewed it {format_duration(round(late))} ago"


def _lease(there: Reached, lease: Obj, why: str) -> Leftover:
    name, space = name_of(lease), namespace_of(lease)

    async def deleted() -> str:
        options = DeleteOptions(uid=uid_of(lease), version=version_of(lease))
        await there.client.delete(LEASES.ref(name, space), options)
        return f"Lease {space}/{name} is deleted"

    remedy = str(command(*kubectl_at(there.resolved), "delete", "lease", name, "--namespace", space))
    text = f"Lease {space}/{name} is held by {why}"
    return Leftover(check="leases", text=text, command=remedy, mend=deleted, remote=True)


async def _webhooks(bench: Bench, there: Reached) -> Found:
    """Configurations with our label whose controller nobody runs: the server asks where nobody answers."""
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
    return Found(left=tuple(left), hidden=tuple(hidden))


def _webhook(there: Reached, resource: Resource, obj: Obj, controller: str) -> Leftover:
    name = name_of(obj)

    async def deleted() -> str:
        await there.client.delete(resource.ref(name), DeleteOptions(uid=uid_of(obj), version=version_of(obj)))
        return f"{resource.kind} {name} is deleted"

    remedy = str(command(*kubectl_at(there.resolved), "delete", resource.full_name, name))
    text = f"{resource.kind} {name} is there, and nobody runs {controller or 'what answers it'}"
    return Leftover(check="webhooks", text=text, command=remedy, mend=deleted, destroys=True, remote=True)
