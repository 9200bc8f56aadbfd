"""A short look at the cluster by a verb that looks back: two seconds in all, and what was found by then counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.cli.verbs.table import Effect
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import CtrlError, TimedOut
from kubectl_ctrl.kubeconfig.resolution import Resolved, ca_fingerprint
from kubectl_ctrl.model.record import Cluster
from kubectl_ctrl.target import connection

PATIENCE = 2.0

Work = Callable[[Client, Resolved], Awaitable[None]]


def shortly(app: App, given: Given, work: Work, *, cluster: Cluster | None = None) -> CtrlError | None:
    """Have it ask the cluster that is meant, which has to be `cluster` where one is given; what kept it from that.

    `work` puts what it finds where its caller sees it, so that what came in time is there though the rest did not.
    """
    clock = SystemClock()

    async def ask() -> None:
        async with clock.timeout(PATIENCE):
            resolved = connection.meant(app, given, Effect.READ)
            if cluster is not None and (resolved.server, ca_fingerprint(resolved)) not in cluster.servers:
                raise CtrlError(f"The context {resolved.context!r} is of another cluster than the recorded one.")
            client = await connection.connected(app, resolved, clock=clock, rng=Random())  # noqa: S311
            try:
                await work(client, resolved)
            finally:
                await client.close()

    try:
        asyncio.run(ask())
    except TimeoutError:
        return TimedOut(f"The cluster did not answer within {PATIENCE:g} s.")
    except CtrlError as error:
        return error
    return None
