"""A scripted server and a caller of it."""

from __future__ import annotations

import pytest

from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import Caller


@pytest.fixture
async def server() -> ScriptedServer:
    return ScriptedServer(FakeClock())


@pytest.fixture
async def call(server: ScriptedServer) -> Caller:
    return Caller(server)
