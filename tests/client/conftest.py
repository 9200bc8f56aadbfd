"""A client and its scripted server, for tests that need nothing special of them."""

from __future__ import annotations

import pytest

from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.client.rig import Rig


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def server(clock: FakeClock) -> ScriptedServer:
    return ScriptedServer(clock)


@pytest.fixture
async def rig(server: ScriptedServer, clock: FakeClock) -> Rig:
    return Rig(server, clock)
