"""A machine for `doctor` that needs nothing special."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.bench import Layout, laid_out


@pytest.fixture
async def at(tmp_path: Path) -> Layout:
    return laid_out(tmp_path)
