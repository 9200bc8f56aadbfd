from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.connect import connect
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import ConfigError, CredentialsError, Unreachable
from kubectl_ctrl.kubeconfig.resolution import Resolved
from tests.client.loopback import server_tls, serving
from tests.kubeconfig.kubeconfigs import certificate, kubeconfig, resolved

pytestmark = pytest.mark.real_loop


CA = base64.b64encode(certificate("ca")).decode()


async def client(found: Resolved) -> Client:
    return await connect(found, clock=SystemClock(), rng=Random(1), environ={}, user_agent="kubectl-ctrl/0.1 (foo)")


async def test_a_client_that_calls(tmp_path: Path) -> None:
    async with serving(tls=server_tls()) as box:
        content = kubeconfig(cluster={"server": box.url, "certificate-authority-data": CA})
        made = await client(resolved(tmp_path, content, as_user="me"))
        assert box.requests == []
        assert (await made.raw("GET", "/version")).status == 200
        assert box.last.all("user-agent") == ["kubectl-ctrl/0.1 (foo)"]
        assert box.last.all("authorization") == ["Bearer t0ken"]
        assert box.last.all("impersonate-user") == ["me"]
        await made.close()


async def test_what_helps_is_asked_for_only_where_nobody_answers(tmp_path: Path) -> None:
    asked = []

    def remedy() -> str:
        asked.append("")
        return "start it"

    async with serving(tls=server_tls()) as box:
        found = resolved(tmp_path, kubeconfig(cluster={"server": box.url, "certificate-authority-data": CA}))
        made = await connect(found, clock=SystemClock(), rng=Random(1), environ={}, user_agent="foo", remedy=remedy)
        await made.raw("GET", "/version")
        assert asked == []
    with pytest.raises(Unreachable) as caught:
        await made.raw("GET", "/version")
    assert caught.value.next_step == "start it"
    await made.close()
    without = await client(found)
    with pytest.raises(Unreachable) as caught:
        await without.raw("GET", "/version")
    assert caught.value.next_step == "Check that the cluster runs and that this machine reaches its address."
    await without.close()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"user": {"tokenFile": "gone"}}, CredentialsError),
        ({"user": {}}, CredentialsError),
        ({"cluster": {"certificate-authority": "gone"}}, ConfigError),
        ({"cluster": {"certificate-authority-data": "YQ=="}}, ConfigError),
    ],
)
def test_what_cannot_work_is_an_error_at_once(tmp_path: Path, change: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        asyncio.run(client(resolved(tmp_path, kubeconfig(**change))))
