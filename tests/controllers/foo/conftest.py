"""The cluster of a test that needs nothing special of it."""

from __future__ import annotations

import pytest

from tests.controllers.foo.foos import FooWorld


@pytest.fixture
async def world() -> FooWorld:
    return FooWorld()
