"""Instances of a controller: processes on this machine, Deployments in the cluster, and holders of Leases elsewhere.

The search uses the user's own rights. Its result also lists the objects that the user is not allowed to read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from enum import StrEnum
from pathlib import Path
from typing import Any

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import ListQuery
from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.errors import Forbidden, NotFound
from kubectl_ctrl.install.marks import NAME, labels, selector
from kubectl_ctrl.install.requirements import account, system_namespace
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Obj, is_deleting, labels_of, name_of, namespace_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, LEASES, NAMESPACES, ObjectRef
from kubectl_ctrl.runs import holder, runners
from kubectl_ctrl.runs.runners import Runner
from kubectl_ctrl.value import Unshown, Value

_COMPONENT = "app.kubernetes.io/component=controller"

# The namespace of Leases while the controller's own namespace does not exist.
_COMMON = "default"
# A Lease that expired so long ago has no living holder, even if our clock is wrong.
LONG_PAST = 600.0


class InstanceKind(StrEnum):
    PROCESS = "process"
    DEPLOYMENT = "deployment"
    LEASE = "lease"


class Instance(Value, kw_only=True):
    """A place where a controller runs, or a Lease of an unknown one. `text` is for messages, `short` for a column."""

    kind: InstanceKind
    controller: str
    text: str
    short: str
    scope: str | None = None  # a namespace, "" for all of them, None if unknown
    runner: Runner | None = None  # of a process
    object: Unshown[Obj | None] = None  # the Deployment or the Lease

    def overlaps(self, scope: str) -> bool:
        return not self.scope or not scope or self.scope == scope

    def lies_in(self, namespace: str) -> bool:
        """Whether its Deployment or Lease is in this namespace."""
        return self.object is not None and namespace_of(self.object) == namespace


class FoundInstances(Value, kw_only=True):
    """Instances, and a sentence for each kind of object that could not be read."""

    places: tuple[Instance, ...] = ()
    unseen: tuple[str, ...] = ()


async def where(client: Client, *, state_dir: Path, cluster: str, name: str) -> list[Instance]:
    """The instances of a controller, without the sentences of `look`."""
    return list((await look(client, state_dir=state_dir, cluster=cluster, name=name)).places)


async def look(client: Client, *, state_dir: Path, cluster: str, name: str) -> FoundInstances:
    """The instances of a controller, and what could not be read."""
    processes = [_process(runner) for runner in runners.runners(state_dir, cluster=cluster, controller=name)]
    deployed, led = await asyncio.gather(deployments(client, name), leases(client, name))
    here = {place.runner.holder for place in processes if place.runner}
    # A Lease held by a process of this machine is not another instance.
    others = [one for one in led.places if ((one.object or {}).get("spec") or {}).get("holderIdentity") not in here]
    return FoundInstances(places=(*processes, *deployed.places, *others), unseen=(*deployed.unseen, *led.unseen))


def asked_to_stop(state_dir: Path, place: Instance) -> bool:
    """Ask a process of this machine to stop, as Ctrl-C does; False if it is none, or has exited."""
    return place.runner is not None and runners.ask_to_stop(state_dir, place.runner)


async def deployments(client: Client, name: str) -> FoundInstances:
    """The controller's Deployments with replicas; only those in its own namespace, if the user cannot list all."""
    found = await deployments_of(client, name)
    running = [one for one in found.objects if replicas_of(one) > 0 and not is_deleting(one)]
    return FoundInstances(places=tuple(_deployment(name, one) for one in running), unseen=found.unseen)


class Objects(Value, kw_only=True):
    """Objects, and a sentence for each kind that could not be listed."""

    objects: tuple[Obj, ...] = ()
    unseen: tuple[str, ...] = ()


async def deployments_of(client: Client, name: str) -> Objects:
    """All Deployments that install created for this controller, also those scaled to zero."""
    which = f"{selector(name)},{_COMPONENT}"

    async def listed(namespace: str) -> Objects:
        answer = await client.list(DEPLOYMENTS, ListQuery(labels=which, namespace=namespace))
        return Objects(objects=tuple(answer.items))

    try:
        return await listed("")
    except Forbidden:
        return await _seen(listed(system_namespace(name)), f"Deployments of {name} in the cluster")


async def leases(client: Client, name: str) -> FoundInstances:
    """The Leases of a controller, of any scope, that are held and not expired by our wall clock."""
    found = await leases_of(client, name)
    now = client.clock.now()
    held = [_lease(name, one, now) for one in found.objects if (late := overdue(one, now)) is not None and late < 0]
    return FoundInstances(places=tuple(held), unseen=found.unseen)


async def leases_of(client: Client, name: str) -> Objects:
    """The Leases of a controller, of any scope, held or not."""

    async def listed(namespace: str) -> Objects:
        answer = await client.list(LEASES, ListQuery(namespace=namespace))
        return Objects(objects=tuple(one for one in answer.items if lease_scope(one, name) is not None))

    spaces = (_COMMON, system_namespace(name))
    parts = await asyncio.gather(*(_seen(listed(one), f"Leases in namespace {one}") for one in spaces))
    return Objects(
        objects=tuple(one for part in parts for one in part.objects),
        unseen=tuple(dict.fromkeys(text for part in parts for text in part.unseen)),
    )


async def lease_ref(client: Client, name: str, scope: str) -> ObjectRef:
    """The Lease of runs with this scope: in the controller's own namespace if that exists."""
    space = system_namespace(name)
    try:
        await client.get(NAMESPACES.ref(space))
    except (NotFound, Forbidden):
        space = _COMMON
    return LEASES.ref(lease_name(name, scope), space)


def lease_name(name: str, scope: str) -> str:
    return f"{account(name)}-{scope}" if scope else account(name)


def lease_labels(name: str) -> dict[str, str]:
    """Labels that distinguish the Lease of `foo` in namespace `bar` from that of a controller `foo-bar`."""
    return labels(name)


def lease_scope(lease: Obj, name: str) -> str | None:
    """The scope of a Lease of that controller; None for another Lease."""
    whole = lease_name(name, "")
    if labels_of(lease).get(NAME, name) != name:
        return None
    if name_of(lease) == whole:
        return ""
    return name_of(lease).removeprefix(f"{whole}-") if name_of(lease).startswith(f"{whole}-") else None


def replicas_of(deployment: Obj) -> int:
    count = (deployment.get("spec") or {}).get("replicas")
    return 1 if count is None else int(count)


async def _seen(listing: Coroutine[Any, Any, Objects], what: str) -> Objects:
    """The listing; a sentence if the server forbids it."""
    try:
        return await listing
    except NotFound:
        return Objects()
    except Forbidden:
        return Objects(unseen=(f"{what} cannot be read with these credentials.",))


def _process(runner: Runner) -> Instance:
    return Instance(
        kind=InstanceKind.PROCESS,
        controller=runner.controller,
        scope=runner.scope,
        text=runner.text,
        short="pid ?" if runner.unreadable else f"pid {runner.pid} ({runner.scope or '-A'})",
        runner=runner,
    )


def _deployment(name: str, found: Obj) -> Instance:
    which = f"{namespace_of(found)}/{name_of(found)}"
    return Instance(
        kind=InstanceKind.DEPLOYMENT,
        controller=name,
        text=f"Deployment {which}",
        short=f"in {namespace_of(found)}",
        object=found,
    )


def _lease(name: str, found: Obj, now: float) -> Instance:
    who = str(found["spec"].get("holderIdentity"))
    which = f"{namespace_of(found)}/{name_of(found)}"
    ago = format_duration(max(0, round(now - (_renewed(found) or now))))
    return Instance(
        kind=InstanceKind.LEASE,
        controller=name,
        scope=lease_scope(found, name),
        text=f"lease {which} held by {who} (renewed {ago} ago)",
        short=f"on {holder.machine_of(who)}",
        object=found,
    )


def overdue(lease: Obj, now: float) -> float | None:
    """Seconds since a held Lease expired, negative before that; None if no living process holds it.

    It uses our wall clock, which may be wrong: see LONG_PAST.
    """
    spec = lease.get("spec") or {}
    renewed = _renewed(lease)
    if not spec.get("holderIdentity") or renewed is None or holder.is_dead(str(spec["holderIdentity"])):
        return None
    return now - renewed - float(spec.get("leaseDurationSeconds") or 0)


def _renewed(lease: Obj) -> float | None:
    try:
        return parse_rfc3339(str((lease.get("spec") or {}).get("renewTime")))
    except ValueError:
        return None
