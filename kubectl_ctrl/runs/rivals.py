"""Before a run starts: nobody else may be running the same controller, in the cluster or on another machine.

A process of this machine is told by its lock (`runners`). Here are Deployments of ours, which run until they are taken
over, and Leases, of any scope that overlaps, also where this run holds none itself: somebody else runs with them.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.errors import CallError, NotFound, Refused
from kubectl_ctrl.model.objects import Obj, is_deleting, name_of, namespace_of
from kubectl_ctrl.model.resources import LEASES
from kubectl_ctrl.runs.instances import (
    LONG_PAST,
    deployments_of,
    lease_name,
    lease_scope,
    leases_of,
    overdue,
    replicas_of,
)
from kubectl_ctrl.runs.settings import RunPlan
from kubectl_ctrl.runs.takeover import Repair, Takeover, ref_of, repair_of
from kubectl_ctrl.target.choice import kubectl_at
from kubectl_ctrl.text import counted

_log = logging.getLogger(__name__)

_LOOK_AGAIN = 1.0


@asynccontextmanager
async def alone(client: Client, plan: RunPlan, identity: str, running: Container[str]) -> AsyncIterator[None]:
    """For the block this run is the only one; Refused, naming who else runs. What it took over is given back after.

    `running`: how the runs of this machine sign.
    """
    takeover = Takeover(client, clock=plan.clock, identity=identity, kubectl=kubectl_at(plan.resolved))
    try:
        for spec in plan.specs:
            await _pass_deployments(client, plan, spec.name, takeover, running)
        for spec in plan.specs:
            await _pass_leases(client, plan, spec.name)
        yield
    finally:
        await takeover.give_all_back()


async def _pass_deployments(
    client: Client, plan: RunPlan, name: str, takeover: Takeover, running: Container[str]
) -> None:
    found = await deployments_of(client, name)
    for sentence in found.unseen:
        _log.warning("%s", sentence, extra={"action": "rivals.unseen"})
    for deployment in found.objects:
        count, repair = replicas_of(deployment), repair_of(deployment)
        if repair is not None:
            _check_over(plan, name, repair, goes_on=repair.goes_on(running))
        # One that is being deleted has pods until they are gone as well.
        if plan.takeover and (count or repair) and not is_deleting(deployment):
            await takeover.take(deployment)
            continue
        if repair is not None:
            count = await _restored(client, repair)
        if count:
            raise Refused(
                f"{name} already runs in the cluster: {ref_of(deployment)} ({counted(count, 'replica')}).",
                next_step=f"to have it wait while yours runs: {plan.again('--takeover')}",
            )


def _check_over(plan: RunPlan, name: str, repair: Repair, *, goes_on: bool) -> None:
    """Refused while whoever took it over may still run it in its place, unless a person says otherwise."""
    if repair.certain or (plan.holder_gone and not goes_on):
        return
    how = "" if goes_on else f"; if it is gone: {plan.again('--takeover', '--yes')}"
    raise Refused(
        f"Somebody else runs {name} in place of its Deployment: {repair.taken.text}.",
        next_step=f"stop that run first{how}",
    )


async def _restored(client: Client, repair: Repair) -> int:
    count = await repair.restore(client) or 0
    _log.warning(
        "%s It is back at %d.",
        repair.text,
        count,
        extra={"action": "takeover.repaired", "deployment": str(repair.taken.ref), "replicas": count},
    )
    return count


async def _pass_leases(client: Client, plan: RunPlan, name: str) -> None:
    """Every held Lease of an overlapping scope is watched for its own time; who renews it lives."""
    found = await leases_of(client, name)
    for sentence in found.unseen:
        _log.warning("%s", sentence, extra={"action": "rivals.unseen"})
    for lease in found.objects:
        scope = lease_scope(lease, name)
        if scope is None or (scope and plan.namespace and scope != plan.namespace):
            continue
        if plan.elects and name_of(lease) == lease_name(name, plan.namespace):
            continue  # the election's own: it waits, takes and refuses by itself
        if _may_live(lease, plan.clock.now()) and await _renewed(client, plan, lease):
            held_by = str(lease["spec"]["holderIdentity"])
            raise Refused(
                f"{name} already runs elsewhere: the Lease {_named(lease)} is held and renewed by {held_by}.",
                next_step="stop that one first",
            )


def _may_live(lease: Obj, now: float) -> bool:
    late = overdue(lease, now)
    return late is not None and late < LONG_PAST


async def _renewed(client: Client, plan: RunPlan, lease: Obj) -> bool:
    """Whether it changes under its holder within its own duration; given back or standing still, it is over."""
    _log.info(
        "The Lease %s is held by %s; waiting to see whether it is renewed.",
        _named(lease),
        lease["spec"]["holderIdentity"],
        extra={"action": "rivals.wait"},
    )
    ref = LEASES.ref(name_of(lease), namespace_of(lease))
    end = plan.clock.elapsed() + _lasts(lease)
    while plan.clock.elapsed() < end:
        await plan.clock.sleep(_LOOK_AGAIN)
        try:
            now = (await client.get(ref)).get("spec") or {}
        except NotFound:
            return False
        except CallError as error:
            _log.debug("The Lease could not be read: %s", error.message)
            continue
        if not now.get("holderIdentity"):
            return False
        if now != lease["spec"]:
            return True
    return False


def _lasts(lease: Obj) -> float:
    return float((lease.get("spec") or {}).get("leaseDurationSeconds") or 0)


def _named(lease: Obj) -> str:
    return f"{namespace_of(lease)}/{name_of(lease)}"
