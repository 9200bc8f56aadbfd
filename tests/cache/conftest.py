"""A site whose informers run."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.cache.site import Site, running


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running() as site:
        yield site
