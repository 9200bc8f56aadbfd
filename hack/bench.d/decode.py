"""From bytes of a watch to the store and one subscriber, 9 KB Pods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from figure import Figure, rate
from pods import events, filled

from kubectl_ctrl.cli.foreground.memory import relax

_PODS = 2_000
_VERSIONS = 4


def figures() -> Iterable[Figure]:
    relax()
    lines = list(events(_PODS, versions=_VERSIONS))

    def decoded() -> int:
        for line in lines:
            json.loads(line)
        return len(lines)

    def stored() -> int:
        asyncio.run(filled(lines, len(lines)))
        return len(lines)

    yield Figure(
        name=f"decode to store, {len(lines[0]):,} B Pods",
        value=rate(stored, rounds=3),
        unit="events/s",
        baseline=rate(decoded, rounds=3),
        against="/s json.loads alone",
        bar=">= 8,000",
    )
