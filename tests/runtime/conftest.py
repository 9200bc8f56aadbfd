"""The cluster of a test that needs nothing special of it."""

from __future__ import annotations

import pytest

from tests.runtime.world import World


@pytest.fixture
async def world() -> World:
    return World()
