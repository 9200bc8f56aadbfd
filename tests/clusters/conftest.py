"""Stand-ins for kind and docker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ctrl.clusters.kind.provider import KindProvider
from tests.clusters.kindprograms import Programs, programs


@pytest.fixture
def there(tmp_path: Path) -> Programs:
    return programs(tmp_path / "the user's machine")


@pytest.fixture
def kind(there: Programs) -> KindProvider:
    return there.kind()
