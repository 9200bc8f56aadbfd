"""A queue on virtual time."""

from __future__ import annotations

import pytest

from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.workqueue.queue import Queue
from tests.workqueue.drive import Q
from tests.workqueue.fastslow import FastSlow


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def queue(clock: FakeClock) -> Q:
    """Keys like `a/x` have the lane `a`."""
    limiter = FastSlow[str](fast=1.0, slow=60.0, fast_attempts=3)
    return Queue(name="foo", clock=clock, limiter=limiter, lane=lambda key: key.partition("/")[0], keep=4)
