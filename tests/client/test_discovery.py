from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.discovery import REFRESH_EVERY, Discovery
from kubectl_ctrl.errors import BadAnswer, Forbidden, NotFound, NotServed, ServerError, Unreachable
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS, HPAS, PODS, Resource
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.server import ScriptedServer
from kubectl_ctrl.value import replace
from tests.client.rig import Rig, answer, on_server, status
from tests.objects import present

FOOS = Resource("samplecontroller.k8s.io", "v1alpha1", "foos", "Foo")
ROOTS = Match(path="/api*")


def crd() -> Obj:
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "shortNames": ["fo"]}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.samplecontroller.k8s.io"},
        "spec": {"group": "samplecontroller.k8s.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


class Old:
    """The scripted server as one that cannot aggregate."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await self._server.send(replace(request, headers={**request.headers, "accept": "application/json"}))

    async def open(self, request: HttpRequest) -> HttpStream:
        return await self._server.open(request)

    async def close(self) -> None: ...


def on_old_server() -> tuple[Rig, ScriptedServer]:
    clock = FakeClock()
    server = ScriptedServer(clock)
    return Rig(Old(server), clock), server


class Paths:
    """Answers by path; what is not listed is 404."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.asked.append(request.path)
        found = self.answers.get(request.path)
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, HttpResponse) else answer(found) if found else answer(status(404), 404)

    async def open(self, request: HttpRequest) -> HttpStream:
        raise NotImplementedError

    async def close(self) -> None: ...


def on_paths(answers: dict[str, Any]) -> tuple[Discovery, Paths, FakeClock]:
    clock = FakeClock()
    paths = Paths(answers)
    return Rig(paths, clock).base.discovery, paths, clock


@pytest.mark.parametrize("run", [on_server, on_old_server])
async def test_a_server_is_read_whole(run: Callable[..., None], rig: Rig, server: ScriptedServer) -> None:
    discovery = rig.client.discovery
    pods = await discovery.find("po")
    assert pods.resource == PODS
    assert (pods.resource.kind, pods.resource.namespaced, pods.singular) == ("Pod", True, "pod")
    assert {"get", "list", "watch"} <= set(pods.verbs)
    assert "status" in pods.subresources
    assert "all" in pods.categories
    assert (await discovery.find("deployment.apps")).resource == DEPLOYMENTS
    assert not (await discovery.find("ns")).resource.namespaced
    assert "hpa" in present(await discovery.serves(HPAS)).short_names


async def test_two_requests_are_enough(rig: Rig, server: ScriptedServer) -> None:
    await asyncio.gather(*(rig.client.discovery.find("pods") for _ in range(20)))
    assert [handled.path for handled in server.requests] == ["/api", "/apis"]


async def test_both_ways_of_reading_agree() -> None:
    found: list[list[str]] = []
    for rig, server in (on_server(), on_old_server()):
        server.create(crd())
        catalog = await rig.client.discovery.catalog()
        found.append(sorted(str(api) for api in catalog.resources))
    assert found[0] == found[1]
    assert len(found[0]) > 10


@pytest.mark.parametrize("run", [on_server, on_old_server])
async def test_a_new_type_is_found_at_its_first_miss(
    run: Callable[..., None], rig: Rig, server: ScriptedServer
) -> None:
    discovery = rig.client.discovery
    assert await discovery.serves(FOOS) is None
    server.create(crd())
    await rig.clock.sleep(REFRESH_EVERY)
    assert "status" in present(await discovery.serves(FOOS)).subresources
    assert (await discovery.find("fo")).resource == FOOS


async def test_misses_do_not_make_a_storm(rig: Rig, server: ScriptedServer) -> None:
    discovery = rig.client.discovery
    await discovery.catalog()
    await rig.clock.sleep(60)
    server.requests.clear()
    for _ in range(10):
        assert await asyncio.gather(*(discovery.serves(FOOS) for _ in range(50))) == [None] * 50
    assert len(server.requests) == 2
    await rig.clock.sleep(REFRESH_EVERY)
    await discovery.serves(FOOS)
    assert len(server.requests) == 4


async def test_forgetting_asks_at_once(rig: Rig, server: ScriptedServer) -> None:
    discovery = rig.client.discovery
    assert await discovery.serves(FOOS) is None
    server.create(crd())
    assert await discovery.serves(FOOS) is None
    discovery.forget()
    assert await discovery.serves(FOOS) is not None


async def test_forgetting_while_it_is_read_asks_again(rig: Rig, server: ScriptedServer) -> None:
    server.answer_delay = 1.0
    first = asyncio.create_task(rig.client.discovery.serves(FOOS))
    await rig.clock.sleep(0.5)
    server.create(crd())
    rig.client.discovery.forget()
    assert await first is not None


async def test_a_type_that_is_gone_stays_known_until_somebody_asks_again(rig: Rig, server: ScriptedServer) -> None:
    server.create(crd())
    discovery = rig.client.discovery
    assert await discovery.serves(FOOS) is not None
    server.delete(CRDS, crd()["metadata"]["name"])
    await rig.clock.sleep(REFRESH_EVERY)
    assert (await discovery.refresh()).get(FOOS) is None


async def test_a_name_of_nothing_names_the_nearest(rig: Rig, server: ScriptedServer) -> None:
    with pytest.raises(NotServed, match="The server has no resource type 'deplyments'") as caught:
        await rig.client.discovery.find("deplyments")
    assert caught.value.next_step == "Did you mean deployments.apps?"
    assert caught.value.exit_code == NotFound.exit_code == 4
    with pytest.raises(NotServed) as caught:
        await rig.client.discovery.find("xyzzy")
    assert "CRD" in caught.value.next_step


async def test_a_server_that_is_down_is_asked_by_one_for_all(rig: Rig, server: ScriptedServer) -> None:
    discovery = rig.client.discovery
    server.down()
    errors = await asyncio.gather(*(discovery.find("pods") for _ in range(20)), return_exceptions=True)
    assert {type(error) for error in errors} == {Unreachable}
    sent = rig.base.counters.sent
    assert sent == 2
    with pytest.raises(Unreachable):
        await discovery.find("pods")
    assert rig.base.counters.sent == sent
    server.up()
    await rig.clock.sleep(REFRESH_EVERY)
    assert (await discovery.find("pods")).resource == PODS


async def test_what_is_known_stays_known_while_the_server_is_down(rig: Rig, server: ScriptedServer) -> None:
    discovery = rig.client.discovery
    await discovery.catalog()
    await rig.clock.sleep(60)
    server.down()
    assert await discovery.serves(PODS) is not None
    with pytest.raises(Unreachable):
        await discovery.serves(FOOS)
    assert (await discovery.find("deploy")).resource == DEPLOYMENTS


async def test_a_cancelled_reader_leaves_the_reading_to_the_next(rig: Rig, server: ScriptedServer) -> None:
    server.answer_delay = 1.0
    first = asyncio.create_task(rig.client.discovery.find("pods"))
    second = asyncio.create_task(rig.client.discovery.find("pods"))
    await rig.clock.sleep(0.5)
    first.cancel()
    assert (await second).resource == PODS
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_reading_that_was_cut_off_does_not_count(rig: Rig, server: ScriptedServer) -> None:
    discovery = rig.client.discovery
    await discovery.catalog()
    server.create(crd())
    discovery.forget()
    server.answer_delay = 1.0
    cut = asyncio.create_task(discovery.refresh())
    await rig.clock.sleep(0.5)
    cut.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cut
    assert await discovery.serves(FOOS) is not None


# --- groups that do not answer

CORE = {
    "kind": "APIGroupDiscoveryList",
    "apiVersion": "apidiscovery.k8s.io/v2",
    "metadata": {},
    "items": [
        {
            "metadata": {},
            "versions": [
                {
                    "version": "v1",
                    "freshness": "Current",
                    "resources": [{"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced"}],
                }
            ],
        }
    ],
}


def groups(*resources: Any, freshness: str = "Current") -> Obj:
    version = {"version": "v1beta1", "freshness": freshness, "resources": list(resources)}
    return {**CORE, "items": [{"metadata": {"name": "metrics.k8s.io"}, "versions": [version]}]}


METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False)
ENTRY = {"resource": "nodes", "responseKind": {"kind": "NodeMetrics"}, "scope": "Cluster", "verbs": ["get"]}


async def test_a_stale_group_costs_that_group_only() -> None:
    discovery, _paths, _clock = on_paths({"/api": CORE, "/apis": groups(freshness="Stale")})
    assert (await discovery.find("pods")).resource == PODS
    assert (await discovery.catalog()).failed == ("metrics.k8s.io/v1beta1",)
    with pytest.raises(ServerError, match=r"'metrics\.k8s\.io/v1beta1' failed, so nodes.metrics.k8s.io is unknown"):
        await discovery.serves(METRICS)
    with pytest.raises(NotServed, match=r"These did not answer: metrics.k8s.io/v1beta1\."):
        await discovery.find("nodes")
    assert await discovery.serves(FOOS) is None


async def test_what_was_known_of_a_group_survives_its_silence() -> None:
    discovery, paths, _clock = on_paths({"/api": CORE, "/apis": groups(ENTRY)})
    assert await discovery.serves(METRICS) is not None
    for silence in (groups(freshness="Stale"), answer(status(503), 503)):
        paths.answers["/apis"] = silence
        discovery.forget()
        catalog = await discovery.refresh()
        assert catalog.get(METRICS) is not None
        assert catalog.failed == ("metrics.k8s.io/v1beta1",)
    paths.answers["/apis"] = groups()
    discovery.forget()
    assert (await discovery.refresh()).get(METRICS) is None


async def test_stale_but_listed_is_what_the_server_last_said() -> None:
    discovery, _paths, _clock = on_paths({"/api": CORE, "/apis": groups(ENTRY, freshness="Stale")})
    assert await discovery.serves(METRICS) is not None


@pytest.mark.parametrize("broken", [answer(status(403, "Forbidden"), 403), answer(b"<html>"), answer(status(500), 500)])
async def test_half_of_the_answers_is_better_than_none(broken: HttpResponse) -> None:
    discovery, _paths, _clock = on_paths({"/api": CORE, "/apis": broken})
    assert (await discovery.find("pods")).resource == PODS
    assert (await discovery.catalog()).failed == ("/apis",)


@pytest.mark.parametrize(
    ("broken", "error"),
    [(answer(status(403, "Forbidden"), 403), Forbidden), (answer(b"<html>"), BadAnswer), (answer(b"[]"), BadAnswer)],
)
async def test_no_answer_at_all_is_an_error(broken: HttpResponse, error: type[Exception]) -> None:
    discovery, _paths, _clock = on_paths({"/api": broken, "/apis": broken})
    with pytest.raises(error):
        await discovery.find("pods")


async def test_a_server_without_a_core_group() -> None:
    discovery, _paths, _clock = on_paths({"/apis": groups(ENTRY)})
    assert await discovery.serves(METRICS) is not None
    assert (await discovery.catalog()).failed == ()


async def test_entries_without_sense_are_passed_over() -> None:
    odd: list[Any] = [None, 7, {}, {"resource": "x"}, {"resource": "x", "responseKind": {}}, ENTRY]
    discovery, _paths, _clock = on_paths({"/api": CORE, "/apis": groups(*odd)})
    assert [api.resource for api in (await discovery.catalog()).resources] == [PODS, METRICS]


# --- servers that do not aggregate

OLD: dict[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {
                "name": "autoscaling",
                "versions": [{"version": "v2"}, {"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            },
            {"name": "broken.example.com", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
        ],
    },
    "/api/v1": {
        "kind": "APIResourceList",
        "resources": [
            {"name": "pods/status", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
            {"name": "pods", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
            {"name": "pods/eviction", "namespaced": True, "kind": "Eviction"},
            {"name": "bindings/x", "namespaced": True, "kind": "Binding"},
            {"kind": "Nameless"},
        ],
    },
    "/apis/autoscaling/v1": {"kind": "APIResourceList", "resources": [{"name": "hpas", "kind": "Hpa"}]},
    "/apis/autoscaling/v2": {"kind": "APIResourceList", "resources": [{"name": "hpas", "kind": "Hpa"}]},
    "/apis/broken.example.com/v1": answer(status(503), 503),
}


async def test_the_preferred_version_is_the_servers_choice() -> None:
    discovery, paths, _clock = on_paths(dict(OLD))
    match = await discovery.match("hpas")
    assert match.found.resource.version == "v1"
    assert match.others == ()
    assert not match.found.resource.namespaced
    pods = await discovery.find("pod")
    assert pods.singular == "pod"
    assert pods.subresources == ("status", "eviction")
    assert (await discovery.catalog()).failed == ("broken.example.com/v1",)
    assert len(paths.asked) == 6


async def test_repr() -> None:
    discovery, _paths, _clock = on_paths({"/api": CORE})
    assert repr(discovery) == "Discovery(None, readings=0)"
    await discovery.catalog()
    assert repr(discovery) == "Discovery(Catalog(resources=1, failed=0), readings=1)"


async def test_scopes_share_what_is_known(rig: Rig, server: ScriptedServer) -> None:
    clients: list[Client] = [rig.base, rig.client]
    assert len({id(client.discovery) for client in clients}) == 1
