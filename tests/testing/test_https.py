"""The fixture `sandbox_server`: clients of any kind with nothing but its files, and faults of their connections."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl import CONFIGMAPS
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.sandbox.process import ServeError
from kubectl_ctrl.testing.faults import ANY, Match
from kubectl_ctrl.testing.https import ServedSandbox
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import MAPS_PATH, configmap, deployment
from tests.waiting import until


class Client:
    """One connection."""

    def __init__(self, served: ServedSandbox) -> None:
        host, port = served.url.removeprefix("https://").split(":")
        trusted = ssl.create_default_context(cafile=str(served.ca))
        self._connection = http.client.HTTPSConnection(host, int(port), context=trusted, timeout=60)
        self._headers = {"Authorization": f"Bearer {served.token}"}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def stream(self, path: str) -> http.client.HTTPResponse:
        self._connection.request("GET", path, headers=self._headers)
        return self._connection.getresponse()

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())


def test_a_client_with_url_token_and_authority(sandbox_server: ServedSandbox) -> None:
    known = yaml.safe_load(sandbox_server.kubeconfig.read_text())
    assert known["clusters"][0]["cluster"]["server"] == sandbox_server.url
    assert known["users"][0]["user"]["token"] == sandbox_server.token
    assert sandbox_server.variables["KUBECONFIG"] == str(sandbox_server.kubeconfig)
    assert sandbox_server.do(lambda server: server.writes) == []
    with Client(sandbox_server) as call:
        assert call("POST", MAPS_PATH, configmap("a", x="y"))[0] == 201
        assert sandbox_server.do(lambda server: server.get(CONFIGMAPS, "a") or {})["data"] == {"x": "y"}
        assert [done.status for done in sandbox_server.do(lambda server: server.requests)] == [201]


def test_its_controllers_act(sandbox_server: ServedSandbox) -> None:
    sandbox_server.do(lambda server: server.create(deployment("web", replicas=2)))

    def ready(server: ScriptedServer) -> bool:
        return bool(present(server.get(DEPLOYMENTS, "web"))["status"].get("readyReplicas") == 2)

    assert sandbox_server.wait_for(ready)


def test_a_wait_in_vain_shows_the_last_value(sandbox_server: ServedSandbox) -> None:
    with pytest.raises(TimeoutError, match=r"^Not within 0\.01 s; the last value is None\.$"):
        sandbox_server.wait_for(lambda server: server.get(CONFIGMAPS, "a"), timeout=0.01)


def test_refused_delayed_and_lost_requests(sandbox_server: ServedSandbox) -> None:
    sandbox_server.do(lambda server: server.faults.fail(Match(verb="get"), 503, message="not now"))
    sandbox_server.do(lambda server: server.faults.delay(Match(verb="get"), before=0.01, after=0.01))
    with Client(sandbox_server) as call:
        assert call("GET", f"{MAPS_PATH}/a")[1]["message"] == "not now"
        assert call("GET", f"{MAPS_PATH}/a")[0] == 404
        sandbox_server.do(lambda server: server.faults.lose(Match(verb="create")))
        with pytest.raises(ConnectionError):
            call("POST", MAPS_PATH, configmap("a"))
    assert sandbox_server.do(lambda server: server.get(CONFIGMAPS, "a")) is not None


def test_a_server_that_is_down_and_up(sandbox_server: ServedSandbox) -> None:
    with Client(sandbox_server) as call:
        watch = call.stream(f"{MAPS_PATH}?watch=true&fieldSelector=metadata.name=a")
        sandbox_server.do(lambda server: server.create(configmap("a")))
        assert json.loads(watch.readline())["object"]["metadata"]["name"] == "a"
        sandbox_server.do(lambda server: server.down())
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            watch.read()
    with Client(sandbox_server) as call, pytest.raises(ConnectionError):
        call("GET", MAPS_PATH)
    sandbox_server.do(lambda server: server.up())
    with Client(sandbox_server) as call:
        assert call("GET", f"{MAPS_PATH}/a")[0] == 200


def test_its_end_does_not_wait_for_a_hanging_request(tmp_path: Path) -> None:
    broken: list[bool] = []

    def ask() -> None:
        with Client(served) as call, pytest.raises(ConnectionError):
            call("GET", MAPS_PATH)
        broken.append(True)

    with ServedSandbox(tmp_path / "box", nodes=0) as served:
        fault = served.do(lambda server: server.faults.hang(ANY))
        client = threading.Thread(target=ask)
        client.start()
        until(lambda: fault.hits == 1)
    client.join()
    assert broken == [True]


def test_a_server_that_cannot_start_raises(tmp_path: Path) -> None:
    with ServedSandbox(tmp_path), pytest.raises(ServeError, match="Another process serves"):
        ServedSandbox(tmp_path)
