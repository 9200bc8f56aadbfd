"""The controllers of the sandbox leave Deployments in the same states as a real kube-controller-manager."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from e2e.kube import COLLECTION_SECONDS
from e2e.kube import Cluster as RealCluster
from e2e.parity.record import unequal
from e2e.parity.rollouts import ROLLOUTS, Cluster, Rollout
from e2e.test_scripted_parity import connected
from kubectl_ctrl.clock import Clock, SystemClock
from kubectl_ctrl.model.transport import HttpRequest, Transport
from kubectl_ctrl.testing.server import ScriptedServer

pytestmark = pytest.mark.real


@pytest.mark.parametrize("rollout", [pytest.param(rollout, id=rollout.name) for rollout in ROLLOUTS])
def test_both_clusters_end_alike(rollout: Rollout, cluster: RealCluster) -> None:
    lines = asyncio.run(_compared(rollout, cluster.kubeconfig))
    assert not lines, "\n".join(lines)


async def _compared(rollout: Rollout, kubeconfig: Path) -> list[str]:
    clock, namespace = SystemClock(), f"rollout-{rollout.name.replace(' ', '-')}"
    async with connected(kubeconfig, clock) as real:
        scripted = ScriptedServer(clock)
        scripted.play_deployments(pods=True)
        for transport in (scripted, real):
            await _create_namespace(transport, namespace)
        ours, theirs = Cluster(scripted, namespace), Cluster(real, namespace)
        for number, ask in enumerate(rollout.asks):
            codes = [await ours.ask(ask), await theirs.ask(ask)]
            assert codes[0] == codes[1], f"{ask.method} {ask.path}: {codes}"
            if lines := await _differences(ours, theirs, clock):
                return [f"after request {number}: {ask.method} {ask.path}", *lines]
    return []


async def _differences(ours: Cluster, theirs: Cluster, clock: Clock) -> list[str]:
    """What is different after both have come to rest."""
    end = clock.elapsed() + COLLECTION_SECONDS
    found: list[tuple[str, Any, Any]] = []
    while clock.elapsed() < end:
        found = list(unequal(await theirs.state(), await ours.state()))
        if not found:
            return []
        await clock.sleep(0.2)
    return [f"  {path}: real {one}, sandbox {other}" for path, one, other in found]


async def _create_namespace(transport: Transport, name: str) -> None:
    body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).encode()
    headers = {"Content-Type": "application/json"}
    request = HttpRequest(method="POST", path="/api/v1/namespaces", headers=headers, body=body)
    assert (await transport.send(request)).status == 201
