"""The cluster of a test that needs nothing special of it."""

from __future__ import annotations

import pytest

from kubectl_ctrl.testing.stage import Stage


@pytest.fixture
async def stage() -> Stage:
    return Stage()
