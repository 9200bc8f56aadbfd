"""An elector in the hands of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubectl_ctrl.errors import CallSite, NotLeading
from kubectl_ctrl.runtime.services import Elector, Services


class Throne:
    """An elector that a test crowns and deposes."""

    def __init__(self) -> None:
        self.leading = False
        self.released = False
        self._changed = asyncio.Event()

    def gate(self) -> float | None:
        if not self.leading:
            raise NotLeading("The lease may have passed.", site=CallSite("lead", "lease"))
        return None

    def set(self, leading: bool) -> None:
        self.leading = leading
        self._changed.set()

    def expire(self) -> None:
        """Time has passed, and nobody said so yet."""
        self.leading = False

    async def run(self, on_lead: Callable[[], None], on_lost: Callable[[], None]) -> None:
        led = False
        try:
            while True:
                if self.leading != led:
                    led = self.leading
                    (on_lead if led else on_lost)()
                self._changed.clear()
                await self._changed.wait()
        finally:
            if led:
                on_lost()
            self.released = True


def on_throne(throne: Elector) -> Services:
    return Services(elector=lambda name, client, tell: throne)
