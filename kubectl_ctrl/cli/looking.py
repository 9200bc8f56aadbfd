"""A short look at the cluster for `explain --live`: a few objects as they are now, for two seconds at most."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from kubectl_ctrl.cli import target
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.command import Given
from kubectl_ctrl.cli.table import Effect
from kubectl_ctrl.client.kubeconfig import ca_fingerprint
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import CtrlError, NotFound, NotServed
from kubectl_ctrl.history.findings.case import Body, Place
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import Cluster, Source

_PATIENCE = 2.0


def look(app: App, given: Given, cluster: Cluster, places: Sequence[Place]) -> tuple[dict[Place, Body], str]:
    """What the cluster says of these objects; and what to tell where it does not say it."""
    clock = SystemClock()
    found: dict[Place, Body] = {}

    async def ask() -> None:
        resolved = target.meant(app, given, Effect.READ)
        if (resolved.server, ca_fingerprint(resolved)) not in cluster.servers:
            raise CtrlError(f"The context {resolved.context!r} is another cluster than the recorded one.")
        async with clock.timeout(_PATIENCE):
            client = await target.connected(app, resolved, clock=clock, rng=Random())  # noqa: S311
            try:
                for place in places:
                    obj: Obj | None
                    try:
                        obj = await client.get(place[0].ref(place[1].name, place[1].namespace))
                    except NotServed:
                        continue  # of a type that is not there nothing can be said to be gone
                    except NotFound:
                        obj = None
                    found[place] = Body(obj=obj, source=Source.LIVE, at=clock.now())
            finally:
                await client.close()

    try:
        asyncio.run(ask())
    except TimeoutError:
        return found, f"The cluster did not answer within {_PATIENCE:g} s; this is as it was recorded."
    except CtrlError as error:
        return found, f"The cluster was not asked or did not answer; this is as it was recorded. {error.message}"
    return found, ""
