"""The pytest plugin, which pytest finds by itself: two fixtures, each a new cluster for every test.

Only here is pytest imported, and the fixtures import what they need, so that tests without them pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kubectl_ctrl.testing.https import ServedSandbox
    from kubectl_ctrl.testing.sandbox import Sandbox


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A Kubernetes cluster in memory with virtual time; see kubectl_ctrl.testing.sandbox."""
    from kubectl_ctrl.testing.sandbox import Sandbox

    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def sandbox_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSandbox]:
    """A Kubernetes API server on loopback with a kubeconfig; see kubectl_ctrl.testing.https."""
    from kubectl_ctrl.testing.https import ServedSandbox

    with ServedSandbox(tmp_path_factory.mktemp("sandbox")) as served:
        yield served
