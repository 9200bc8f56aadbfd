"""The cluster of a test that needs nothing special of it."""

from __future__ import annotations

import pytest

from tests.controllers.scaler.stage import Stage


@pytest.fixture
async def stage() -> Stage:
    return Stage()
