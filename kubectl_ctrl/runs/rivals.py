"""Before a run starts: the check that the same controller does not run in the cluster or on another machine.

Processes of this machine are found by their locks (`runners`). This module checks the controller's Deployments, which
only a takeover stops, and held Leases of all overlapping scopes, also if this run holds no Lease itself.
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
from kubectl_ctrl.runs.takeover import Takeover, UnrestoredDeployment, ref_of, repair_of
from kubectl_ctrl.target.choice import kubectl_at
from kubectl_ctrl.text import counted

_log = logging.getLogger(__name__)

_PACE = 1.0


@asynccontextmanager
async def alone(client: Client, plan: RunPlan, identity: str, running: Container[str]) -> AsyncIterator[None]:
    """Ensure that no other run is active, for the block; Refused names the other one. Takeovers end with the block.

    `running`: the holder identities of the runs on this machine.
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
        # A Deployment that is being deleted still has running pods.
        if plan.takeover and (count or repair) and not is_deleting(deployment):
            await takeover.take(deployment)
            continue
        if repair is not None:
            count = await _restored(client, repair)
        if count:
            raise Refused(
                f"{name} already runs in the cluster: {ref_of(deployment)} ({counted(count, 'replica')}).",
                next_step=f"to scale it to zero while yours runs: {plan.again('--takeover')}",
            )


def _check_over(plan: RunPlan, name: str, repair: UnrestoredDeployment, *, goes_on: bool) -> None:
    """Refused while the run that took it over may still be active, unless the user confirms that it is gone."""
    if repair.certain or (plan.holder_gone and not goes_on):
        return
    how = "" if goes_on else f"; if it is gone: {plan.again('--takeover', '--yes')}"
    raise Refused(
        f"Another run has taken over the Deployment of {name}: {repair.taken.text}.",
        next_step=f"stop that run first{how}",
    )


async def _restored(client: Client, repair: UnrestoredDeployment) -> int:
    count = await repair.restore(client) or 0
    _log.warning(
        "%s Restored it; replicas: %d.",
        repair.text,
        count,
        extra={"action": "takeover.repaired", "deployment": str(repair.taken.ref), "replicas": count},
    )
    return count


async def _pass_leases(client: Client, plan: RunPlan, name: str) -> None:
    """Refused if a held Lease of an overlapping scope is renewed within its own duration."""
    found = await leases_of(client, name)
    for sentence in found.unseen:
        _log.warning("%s", sentence, extra={"action": "rivals.unseen"})
    for lease in found.objects:
        scope = lease_scope(lease, name)
        if scope is None or (scope and plan.namespace and scope != plan.namespace):
            continue
        if plan.elects and name_of(lease) == lease_name(name, plan.namespace):
            continue  # the election's own: it waits, takes and refuses by itself
        late = overdue(lease, plan.clock.now())
        if late is not None and late < LONG_PAST and await _renewed(client, plan, lease):
            held_by = str(lease["spec"]["holderIdentity"])
            raise Refused(
                f"{name} already runs elsewhere: the Lease {_named(lease)} is held and renewed by {held_by}.",
                next_step="stop that run first",
            )


async def _renewed(client: Client, plan: RunPlan, lease: Obj) -> bool:
    """Whether its holder renews it within its duration.

    Our wall clock may differ from the holder's, so a Lease that looks expired is watched too. A released one is over.
    """
    _log.info(
        "The Lease %s is held by %s; waiting for a renewal.",
        _named(lease),
        lease["spec"]["holderIdentity"],
        extra={"action": "rivals.wait"},
    )
    ref = LEASES.ref(name_of(lease), namespace_of(lease))
    end = plan.clock.elapsed() + float(lease["spec"].get("leaseDurationSeconds") or 0)
    while plan.clock.elapsed() < end:
        await plan.clock.sleep(_PACE)
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


def _named(lease: Obj) -> str:
    return f"{namespace_of(lease)}/{name_of(lease)}"
