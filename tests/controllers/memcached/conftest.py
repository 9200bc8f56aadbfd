"""The cluster of a test that needs nothing special of it."""

from __future__ import annotations

import pytest

from tests.controllers.memcached.caching import Caching


@pytest.fixture
async def stage() -> Caching:
    return Caching()
