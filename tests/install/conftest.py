"""A cluster on which nothing was written yet."""

from __future__ import annotations

import pytest

from tests.install.land import Land


@pytest.fixture
async def land() -> Land:
    land = Land()
    land.server.writes.clear()
    return land
