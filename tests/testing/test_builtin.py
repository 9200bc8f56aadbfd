from __future__ import annotations

import pytest

from kubectl_ctrl.testing.builtin import quantity


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1", "1"),
        (2, "2"),
        ("1024Mi", "1Gi"),
        ("1000Mi", "1000Mi"),
        ("2000M", "2G"),
        ("0", "0"),
        ("odd", "odd"),
    ],
)
def test_quantities(given: str | int, shown: str) -> None:
    assert quantity(given) == shown
