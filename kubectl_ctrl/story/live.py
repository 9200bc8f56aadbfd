"""A short look at the cluster for `--live`: a few objects as they are now."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.errors import NotFound, NotServed
from kubectl_ctrl.findings.case import Body, Place
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import Cluster, Source
from kubectl_ctrl.story.short_query import shortly


def look(app: App, given: Given, cluster: Cluster, places: Sequence[Place]) -> tuple[dict[Place, Body], str]:
    """What the cluster says of these objects; and what to tell where it does not say it."""
    found: dict[Place, Body] = {}

    async def ask(client: Client, resolved: Resolved) -> None:
        for place in places:
            obj: Obj | None
            try:
                obj = await client.get(place[0].ref(place[1].name, place[1].namespace))
            except NotServed:
                continue  # of a type that is not there nothing can be said to be gone
            except NotFound:
                obj = None
            found[place] = Body(obj=obj, source=Source.LIVE, at=client.clock.now())

    error = shortly(app, given, ask, cluster=cluster)
    return found, f"This is as it was recorded. {app.briefly(error)}" if error is not None else ""
