"""Waits until new CRDs can be used: their names are accepted, they are Established, and discovery lists them."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.errors import CtrlError, NotFound, TimedOut
from kubectl_ctrl.install.crds import namesakes, served
from kubectl_ctrl.model.conditions import find, is_true
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.resources import CRDS

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


async def wait_until_served(client: Client, wanted: Sequence[Obj], seconds: float) -> None:
    """Return when all of these CRDs are served; TimedOut names the missing conditions.

    A name that another CRD uses is an error at once: waiting does not help.
    """
    end = client.clock.elapsed() + seconds
    pause = _FIRST_PAUSE
    while missing := [why for crd in wanted if (why := await _missing(client, crd))]:
        left = end - client.clock.elapsed()
        if left <= 0:
            raise TimedOut(
                f"Not ready within {format_duration(seconds)}: {'; '.join(missing)}.",
                next_step="all objects are in the cluster; repeat the command with a longer --wait to check whether "
                "they are ready",
            )
        await client.clock.sleep(min(pause, left))
        pause = min(pause * 2, _LONGEST_PAUSE)


async def _missing(client: Client, crd: Obj) -> str:
    """The first condition that is not met, as a clause, or ""."""
    name = name_of(crd)
    try:
        live = await client.get(CRDS.ref(name))
    except NotFound:
        return f"the CRD {name} was deleted"
    accepted = find(live, "NamesAccepted")
    if accepted is not None and accepted.get("status") == "False":
        others = await namesakes(client, crd)
        whose = f"; {', '.join(others)} has it" if others else ""
        raise CtrlError(
            f"The server does not accept a name of the CRD {name!r}: {accepted.get('message')}{whose}.",
            next_step="delete the other CRD, or rename this one",
        )
    if not is_true(live, "Established"):
        return f"the CRD {name} is not Established"
    client.discovery.forget()
    for resource in served(crd):
        if await client.discovery.serves(resource) is None:
            return f"{resource} ({resource.api_version}) is missing in discovery"
    return ""
