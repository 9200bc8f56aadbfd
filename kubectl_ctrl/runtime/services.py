"""What a controller needs besides its loop, as seen from the loop: leadership and the sending of events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.model.attempt import Background
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.value import Value, field

Tell = Callable[[Background], None]


class Elector(Protocol):
    """Says whether this process may act for one controller."""

    @property
    def leading(self) -> bool: ...

    def gate(self) -> float | None:
        """Seconds that a call may still take (None: no limit); raises NotLeading when the lease may have passed."""

    async def run(self, on_lead: Callable[[], None], on_lost: Callable[[], None]) -> None:
        """Stand for election until cancelled, then give the lease back. After each `on_lead` comes one `on_lost`.

        Raises an error of our tree when it can never lead, as behind another living holder.
        """


class Recorder(Protocol):
    """Sends the events that attempts ask for, in the background."""

    def record(self, about: Obj, *, type: str, reason: str, message: str, attempt: str) -> None:  # noqa: A002
        """Queue one; never waits and never raises."""

    async def run(self) -> None:
        """Send until cancelled."""

    async def flush(self) -> None:
        """Return when what was queued before this call was sent or given up; soon."""


class Services(Value, kw_only=True):
    """How to make them for a controller of this name; their calls are told to the function that they are given.

    The recorder's client has a gate, which is closed while another may lead: a scope of its own has to keep it.
    Without an elector it always leads; without a recorder it says nothing. `clients` has, by its name, the client of a
    controller that acts as somebody else than the run itself.
    """

    elector: Callable[[str, Client, Tell], Elector] | None = None
    recorder: Callable[[str, Client, Tell], Recorder] | None = None
    clients: Mapping[str, Client] = field(default_factory=dict)


class Mute:
    """A recorder that sends nothing: the attempt still holds what was meant to be said."""

    def record(self, about: Obj, *, type: str, reason: str, message: str, attempt: str) -> None:  # noqa: A002
        """Nothing is sent."""

    async def run(self) -> None:
        """There is nothing to do."""

    async def flush(self) -> None:
        """There is nothing to wait for."""
