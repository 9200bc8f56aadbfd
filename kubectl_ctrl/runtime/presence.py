"""Notices when missing resource types are served, so that a controller starts by itself once its CRD is there.

An informer of a missing type backs off for longer and longer. This reads discovery, every few seconds while a type is
missing and not at all otherwise, and retries the informer when its type is served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from random import Random

from kubectl_ctrl.cache.informer import Informer
from kubectl_ctrl.client.discovery import Discovery
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CtrlError

_log = logging.getLogger(__name__)

_EVERY = 5.0


class Presence:
    """`missing` gives the informers whose type is not served, as they found themselves."""

    def __init__(
        self, discovery: Discovery, missing: Callable[[], Sequence[Informer]], *, clock: Clock, rng: Random
    ) -> None:
        self._discovery = discovery
        self._missing = missing
        self._clock = clock
        self._rng = rng

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(_EVERY * self._rng.uniform(0.8, 1.2))
            if missing := self._missing():
                await self._look(missing)

    async def _look(self, missing: Sequence[Informer]) -> None:
        self._discovery.forget()
        try:
            catalog = await self._discovery.refresh()
        except CtrlError as error:  # the next check may succeed
            fields = {"action": "presence.unknown", "why": str(error)}
            _log.debug("Discovery failed while waiting for missing types.", extra=fields)
            return
        for informer in missing:
            if catalog.get(informer.selection.resource) is not None:
                informer.retry_now()

    def __repr__(self) -> str:
        return f"Presence(missing={len(self._missing())})"
