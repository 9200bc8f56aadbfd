"""The scripted API server of kubectl_ctrl.testing responds like a real one, request by request.

Most tests of controllers rely on the scripted server. Here every scenario is played on both. A gap that the scripted
server's docstring lists must show as a difference, so that the docstring stays true.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e.crds import wait_until_served
from e2e.kube import COLLECTION_SECONDS, Cluster, Kubectl
from e2e.parity import applying, deleting, reading, shapes, watching, writing
from e2e.parity.asks import EVENS, FOOS, GROUP, Ask, Scenario, even_crd, foo_crd
from e2e.parity.play import Player
from kubectl_ctrl.client.auth.credentials import Credentials
from kubectl_ctrl.client.network import NetworkTransport
from kubectl_ctrl.client.transport import HttpRequest, Transport
from kubectl_ctrl.clock import Clock, SystemClock
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, load
from kubectl_ctrl.testing import server
from kubectl_ctrl.testing.server import ScriptedServer

# All scenarios are played at once, for the first test that needs one.
pytestmark = pytest.mark.xdist_group("test_scripted_parity")

ROOMS = (reading, writing, applying, deleting, shapes, watching)
SCENARIOS = [scenario for room in ROOMS for scenario in room.SCENARIOS]
_JSON = {"Content-Type": "application/json"}
AT_ONCE = 8

Differences = Mapping[str, list[str] | BaseException]  # by the name of the scenario


@pytest.fixture(scope="module")
def kubeconfig(cluster: Cluster, plain_env: Mapping[str, str]) -> Iterator[Path]:
    """The session's cluster with the CRDs of the scenarios in it."""
    admin = Kubectl(cluster.programs / "kubectl", {**plain_env, "KUBECONFIG": str(cluster.kubeconfig)})
    admin.create(foo_crd(), even_crd())
    names = [f"{plural}.{GROUP}" for plural in ("foos", "evens")]
    for name in names:
        wait_until_served(admin, name)
    yield cluster.kubeconfig
    _let_go(admin)
    admin("delete", "crd", *names)


def _let_go(admin: Kubectl) -> None:
    """The objects of a scenario would block the deletion of their type, and with it all files after this one."""
    for obj in admin.json("get", f"foos.{GROUP}", "--all-namespaces")["items"]:
        meta = obj["metadata"]
        if meta.get("finalizers"):
            free = ("--type=merge", '--patch={"metadata":{"finalizers":null}}')
            admin.try_("patch", f"foos.{GROUP}", meta["name"], f"--namespace={meta['namespace']}", *free)


@pytest.fixture(scope="module")
def differences(kubeconfig: Path, request: pytest.FixtureRequest) -> Differences:
    """The differences between the servers, by scenario; the selected scenarios run at once."""
    calls = (getattr(item, "callspec", None) for item in request.session.items)
    found = [call.params["scenario"] for call in calls if call is not None and "scenario" in call.params]
    wanted = [one for one in found if isinstance(one, Scenario)]
    # Those that wait for a controller first.
    wanted.sort(key=lambda one: not any(ask.settled for ask in one.asks))
    return asyncio.run(_played(wanted, kubeconfig))


@pytest.mark.parametrize("scenario", [pytest.param(scenario, id=scenario.name) for scenario in SCENARIOS])
def test_both_servers_answer_alike(scenario: Scenario, differences: Differences) -> None:
    found = differences[scenario.name]
    if isinstance(found, BaseException):
        raise found
    if scenario.gap:
        assert found, f"The servers agree: {scenario.gap!r} is no gap any more."
    else:
        assert not found, "\n".join(found)


def test_a_gap_is_one_that_is_documented() -> None:
    documented = " ".join((server.__doc__ or "").split())
    assert [scenario.gap for scenario in SCENARIOS if scenario.gap not in documented] == []


def test_no_two_scenarios_have_one_name() -> None:
    assert [name for name, times in Counter(scenario.name for scenario in SCENARIOS).items() if times > 1] == []


async def _played(scenarios: Sequence[Scenario], kubeconfig: Path) -> Differences:
    clock, turns = SystemClock(), asyncio.Semaphore(AT_ONCE)
    async with _connected(kubeconfig, clock) as real:
        for path in (FOOS, FOOS.replace("/v1/", "/v1beta1/"), EVENS):
            await _cached(path.format(ns="default"), real, clock)

        async def play(number: int, scenario: Scenario) -> list[str]:
            async with turns:
                return await _compared(scenario, f"parity-{number}", real, clock)

        plays = (play(number, scenario) for number, scenario in enumerate(scenarios))
        found = await asyncio.gather(*plays, return_exceptions=True)
    return {scenario.name: lines for scenario, lines in zip(scenarios, found, strict=True)}


async def _cached(path: str, real: Transport, clock: Clock) -> None:
    """Wait until the real server's cache of that type is filled.

    A CRD is Established a moment before its objects are served, and the cache is filled after that. A watch from an
    older version than that of the filled cache would end with code 410.
    """
    request = HttpRequest(method="GET", path=path, query=(("watch", "true"), ("resourceVersion", "0")))
    end = clock.elapsed() + 90
    while True:
        stream = await real.open(request)
        await stream.close()
        if stream.status == 200:
            return
        assert clock.elapsed() < end, f"{path} is not served: {stream.status}"
        await clock.sleep(0.1)


async def _compared(scenario: Scenario, namespace: str, real: Transport, clock: Clock) -> list[str]:
    """The scenario in its own namespace, which stays, because the session's cluster is deleted anyway."""
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    scripted = ScriptedServer(clock)
    for obj in (foo_crd(), even_crd(), place):
        scripted.create(obj, manager="setup")
    query, body = (("fieldManager", "setup"),), json.dumps(place).encode()
    request = HttpRequest(method="POST", path="/api/v1/namespaces", query=query, headers=_JSON, body=body)
    made = await real.send(request)
    assert made.status == 201, made.body
    ours, theirs = Player(scripted, namespace, scenario, clock), Player(real, namespace, scenario, clock)
    try:
        return [text for ask in scenario.asks if (text := await _difference(ask, ours, theirs, clock))]
    finally:
        await scripted.close()


@asynccontextmanager
async def _connected(kubeconfig: Path, clock: Clock) -> AsyncIterator[NetworkTransport]:
    found = load(ConfigFlags(kubeconfig=str(kubeconfig)), {}, kubeconfig.parent)
    transport = NetworkTransport(found, Credentials(found, clock=clock, environ={}, interactive=False), clock=clock)
    try:
        yield transport
    finally:
        await transport.close()


async def _difference(ask: Ask, ours: Player, theirs: Player, clock: Clock) -> str:
    """The differences of the real response; retried while the cluster's controllers have to act first."""
    scripted, real = await ours.ask(ask), await theirs.ask(ask)
    end = clock.elapsed() + COLLECTION_SECONDS
    while ask.settled and scripted != real and clock.elapsed() < end:
        await clock.sleep(0.1)
        theirs.forget()
        real = await theirs.ask(ask)
    lines = [f"  {path}: real {one}, scripted {other}" for path, one, other in _unequal(real, scripted)]
    return "\n".join([f"{ask.method} {ask.path} {dict(ask.query)}", *lines]) if lines else ""


def _unequal(real: Any, scripted: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """The paths at which two JSON values differ, with both values."""
    if isinstance(real, dict) and isinstance(scripted, dict):
        for key in sorted(real | scripted):
            yield from _unequal(real.get(key, ...), scripted.get(key, ...), f"{path}.{key}")
    elif isinstance(real, list) and isinstance(scripted, list) and len(real) == len(scripted):
        for place, (one, other) in enumerate(zip(real, scripted, strict=True)):
            yield from _unequal(one, other, f"{path}[{place}]")
    elif real != scripted:
        yield path, _shown(real), _shown(scripted)


def _shown(value: Any) -> str:
    return "nothing" if value is ... else json.dumps(value)
