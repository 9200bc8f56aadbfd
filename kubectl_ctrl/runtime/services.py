"""The services of a controller besides its loop: leader election and events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.model.attempt import BackgroundCall
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.value import Value, field

Tell = Callable[[BackgroundCall], None]


class Elector(Protocol):
    """Decides whether this process may act for one controller."""

    @property
    def leading(self) -> bool: ...

    def gate(self) -> float | None:
        """Seconds left for a call (None: no limit); raises NotLeading when another process may lead."""

    async def run(self, on_lead: Callable[[], None], on_lost: Callable[[], None]) -> None:
        """Take part in the election until cancelled, then release the Lease. One `on_lost` follows each `on_lead`.

        Raises a CtrlError if it can never lead, as behind another active holder.
        """


class EventSender(Protocol):
    """Sends the events of attempts in the background."""

    def record(self, about: Obj, *, type: str, reason: str, message: str, attempt: str) -> None:  # noqa: A002
        """Queue an event; never waits and never raises."""

    async def run(self) -> None:
        """Send until cancelled."""

    async def flush(self) -> None:
        """Return when all queued events are sent or dropped; soon."""


class Services(Value, kw_only=True):
    """Factories by the name of a controller; they pass their calls to the given function.

    The recorder's client has a gate, which is closed while another process may lead: scopes of it must keep the gate.
    Without an elector a controller always leads; without a recorder it sends no events. `clients` has the client of
    each controller that acts as another user than the run itself.
    """

    elector: Callable[[str, Client, Tell], Elector] | None = None
    recorder: Callable[[str, Client, Tell], EventSender] | None = None
    clients: Mapping[str, Client] = field(default_factory=dict)


class NoEvents:
    """A recorder that sends nothing: the events are still in the record of the attempt."""

    def record(self, about: Obj, *, type: str, reason: str, message: str, attempt: str) -> None:  # noqa: A002
        """Do nothing."""

    async def run(self) -> None:
        """Do nothing."""

    async def flush(self) -> None:
        """Do nothing."""
