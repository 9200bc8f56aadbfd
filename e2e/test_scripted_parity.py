"""A real server answers a sample of the scenarios as recorded; with --record all are played, and recorded.

tests/sandbox/test_parity.py compares the record with the answers of the sandbox.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from e2e.crds import wait_until_served
from e2e.kube import COLLECTION_SECONDS, Cluster, Kubectl
from e2e.parity import record
from e2e.parity.asks import EVENS, FOOS, GROUP, SHAPES, Scenario, even_crd, foo_crd, shape_crd
from e2e.parity.play import Player
from e2e.parity.record import SCENARIOS, Answers
from kubectl_ctrl.client.auth.credentials import Credentials
from kubectl_ctrl.client.network import NetworkTransport
from kubectl_ctrl.clock import Clock, SystemClock
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, load
from kubectl_ctrl.model.transport import HttpRequest, Transport

# All scenarios are played at once, for the first test that needs one.
pytestmark = [pytest.mark.real, pytest.mark.xdist_group("test_scripted_parity")]

EVERY = 20
AT_ONCE = 8
_JSON = {"Content-Type": "application/json"}

Expected = Mapping[str, Answers]  # by the name of the scenario
Played = Mapping[str, Answers | BaseException]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "scenario" in metafunc.fixturenames:
        wanted = SCENARIOS if metafunc.config.getoption("--record") else SCENARIOS[::EVERY]
        metafunc.parametrize("scenario", [pytest.param(scenario, id=scenario.name) for scenario in wanted])


@pytest.fixture(scope="module")
def kubeconfig(cluster: Cluster, plain_env: Mapping[str, str]) -> Iterator[Path]:
    """The session's cluster with the CRDs of the scenarios in it."""
    admin = Kubectl(cluster.programs / "kubectl", {**plain_env, "KUBECONFIG": str(cluster.kubeconfig)})
    admin.create(foo_crd(), even_crd(), shape_crd())
    names = [f"{plural}.{GROUP}" for plural in ("foos", "evens", "shapes")]
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
def expected(request: pytest.FixtureRequest) -> Expected:
    """The record; to record again, the answers of the sandbox."""
    if not request.config.getoption("--record"):
        return record.recorded()
    clock = SystemClock()
    return {one.name: asyncio.run(record.sandbox_answers(one, clock)) for one in _selected(request)}


@pytest.fixture(scope="module")
def played(kubeconfig: Path, expected: Expected, request: pytest.FixtureRequest) -> Played:
    """The answers of the real server; the selected scenarios run at once."""
    answers = asyncio.run(_played(_selected(request), expected, kubeconfig))
    if request.config.getoption("--record"):
        record.write_record({name: one for name, one in answers.items() if not isinstance(one, BaseException)})
    return answers


def _selected(request: pytest.FixtureRequest) -> list[Scenario]:
    """Those that wait for a controller first."""
    calls = (getattr(item, "callspec", None) for item in request.session.items)
    found = [call.params["scenario"] for call in calls if call is not None and "scenario" in call.params]
    wanted = [one for one in found if isinstance(one, Scenario)]
    return sorted(wanted, key=lambda one: not any(ask.settled for ask in one.asks))


def test_the_real_server_answers_so(
    scenario: Scenario, expected: Expected, played: Played, request: pytest.FixtureRequest
) -> None:
    found = played[scenario.name]
    if isinstance(found, BaseException):
        raise found
    if not request.config.getoption("--record"):
        scenario = replace(scenario, gap="")  # a gap is one between the real server and the sandbox
    record.check(scenario, found, expected[scenario.name])


async def _played(scenarios: Sequence[Scenario], expected: Expected, kubeconfig: Path) -> Played:
    clock, turns = SystemClock(), asyncio.Semaphore(AT_ONCE)
    async with connected(kubeconfig, clock) as real, connected(_without_user(kubeconfig), clock) as bare:
        for path in (FOOS, FOOS.replace("/v1/", "/v1beta1/"), EVENS, SHAPES):
            await _cached(path.format(ns="default"), real, clock)

        async def play(scenario: Scenario) -> Answers:
            async with turns:
                return await _answers(scenario, expected[scenario.name], (real, bare), clock)

        found = await asyncio.gather(*map(play, scenarios), return_exceptions=True)
    return {scenario.name: answers for scenario, answers in zip(scenarios, found, strict=True)}


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


async def _answers(scenario: Scenario, expected: Answers, reals: tuple[Transport, Transport], clock: Clock) -> Answers:
    """Of the scenario in its own namespace, which stays, because the session's cluster is deleted anyway.

    A request is repeated while the cluster's controllers have to act first.
    """
    namespace = record.namespace_of(scenario)
    query, body = (("fieldManager", "setup"),), json.dumps(record.place(namespace)).encode()
    request = HttpRequest(method="POST", path="/api/v1/namespaces", query=query, headers=_JSON, body=body)
    made = await reals[0].send(request)
    assert made.status == 201, made.body
    account = HttpRequest(method="GET", path=f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    while (await reals[0].send(account)).status != 200:  # without it no pod is admitted
        await clock.sleep(0.1)
    player, answers = Player(*reals, namespace, scenario, clock), []
    for ask, awaited in zip(scenario.asks, expected, strict=True):
        answer = await player.ask(ask)
        end = clock.elapsed() + COLLECTION_SECONDS
        while ask.settled and answer != awaited and clock.elapsed() < end:
            await clock.sleep(0.1)
            player.forget()
            answer = await player.ask(ask)
        answers.append(answer)
    return answers


def _without_user(kubeconfig: Path) -> Path:
    """A kubeconfig of the same server with a password, which it ignores."""
    content = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    users = [{"name": one["name"], "user": {"username": "nobody", "password": "-"}} for one in content["users"]]
    bare = kubeconfig.with_name(f"{kubeconfig.name}-bare")
    bare.write_text(yaml.safe_dump({**content, "users": users}), encoding="utf-8")
    return bare


@asynccontextmanager
async def connected(kubeconfig: Path, clock: Clock) -> AsyncIterator[NetworkTransport]:
    found = load(ConfigFlags(kubeconfig=str(kubeconfig)), {}, kubeconfig.parent)
    transport = NetworkTransport(found, Credentials(found, clock=clock, environ={}, interactive=False), clock=clock)
    try:
        yield transport
    finally:
        await transport.close()
