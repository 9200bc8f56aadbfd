"""A sandbox that is served from a folder: its files, its port, its lock and its data, over TLS."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.sandbox.__main__ import main
from kubectl_ctrl.sandbox.process import PORTS, ServeError, Serving, Settings, serve
from kubectl_ctrl.value import replace
from tests.sandbox.callers import MAPS_PATH, configmap

pytestmark = pytest.mark.real_loop


class Run:
    """One run of the server, and a client that reads nothing but its kubeconfig."""

    def __init__(self, settings: Settings) -> None:
        self.stop = asyncio.Event()
        self._ready: asyncio.Future[Serving] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(serve(settings, SystemClock(), Random(), self._ready.set_result, self.stop))

    async def serving(self) -> Serving:
        waiting: list[asyncio.Future[Any]] = [self._ready, self._task]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            await self._task
        return await self._ready

    async def end(self) -> None:
        self.stop.set()
        await self._task

    async def ask(self, method: str, path: str, body: Any = None, *, token: str | None = None) -> tuple[int, Any]:
        known = yaml.safe_load(Path((await self.serving()).kubeconfig).read_text())
        cluster, user = known["clusters"][0]["cluster"], known["users"][0]["user"]
        trusted = ssl.create_default_context()
        trusted.load_verify_locations(cafile=self.authority)
        host, port = cluster["server"].removeprefix("https://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=trusted)
        data = b"" if body is None else json.dumps(body).encode()
        start = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {len(data)}\r\n"
        writer.write(f"{start}Authorization: Bearer {token or user['token']}\r\n\r\n".encode() + data)
        head, _, answer = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return int(head.split()[1]), json.loads(answer)

    authority = ""


Begin = Callable[..., Run]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(folder=tmp_path / "box")


@pytest.fixture
async def begin(settings: Settings) -> AsyncGenerator[Begin, None]:
    runs: list[Run] = []

    def begin(**changes: Any) -> Run:
        runs.append(Run(replace(settings, **changes)))
        runs[-1].authority = str(settings.folder / "ca.crt")
        return runs[-1]

    yield begin
    for run in runs:
        run.stop.set()
        await asyncio.gather(run._task, return_exceptions=True)


async def test_a_folder_has_everything_a_client_needs(begin: Begin, settings: Settings) -> None:
    run = begin(name="one: two")
    serving = await run.serving()
    known = yaml.safe_load(Path(serving.kubeconfig).read_text())
    assert known["current-context"] == "one: two"
    assert known["contexts"] == [{"name": "one: two", "context": {"cluster": "one: two", "user": "one: two"}}]
    assert known["clusters"][0]["cluster"]["server"] == serving.server
    assert int(serving.server.rpartition(":")[2]) in PORTS
    names = [".lock", "ca.crt", "ca.key", "kubeconfig", "port", "tls.crt", "tls.key", "token"]
    assert sorted(path.name for path in settings.folder.iterdir()) == names
    assert {path.stat().st_mode & 0o777 for path in settings.folder.iterdir()} == {0o600}
    assert settings.folder.stat().st_mode & 0o777 == 0o700
    assert (await run.ask("POST", MAPS_PATH, configmap("a")))[0] == 201
    assert (await run.ask("GET", f"{MAPS_PATH}/a"))[0] == 200
    for path in (MAPS_PATH, f"{MAPS_PATH}?watch=1"):
        assert (await run.ask("GET", path, token="other"))[0] == 401


async def test_one_process_serves_a_folder(begin: Begin) -> None:
    await begin().serving()
    with pytest.raises(ServeError, match="Another process serves"):
        await begin(data=True).serving()


async def test_data_survive_and_the_rest_does_not(begin: Begin) -> None:
    for data, status in ((False, 404), (True, 200)):
        run = begin(data=data)
        await run.ask("POST", MAPS_PATH, configmap("a"))
        address = await run.serving()
        kubeconfig = Path(address.kubeconfig).read_text()
        await run.end()
        again = begin(data=data)
        assert await again.serving() == address
        assert Path(address.kubeconfig).read_text() == kubeconfig
        assert (await again.ask("GET", f"{MAPS_PATH}/a"))[0] == status
        await again.end()


async def test_each_request_is_in_the_audit_log_before_its_answer(begin: Begin, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    run = begin(audit_log=log)
    await run.ask("POST", f"{MAPS_PATH}?dryRun=All", configmap("a"))
    await run.ask("GET", f"{MAPS_PATH}/a", token="other")
    first, second = [json.loads(line) for line in log.read_text().splitlines()]
    reference = {"resource": "configmaps", "namespace": "default", "name": "a"}
    assert (first["verb"], first["objectRef"], first["responseStatus"]) == ("create", reference, {"code": 201})
    assert (first["requestURI"], first["stage"]) == (f"{MAPS_PATH}?dryRun=All", "ResponseComplete")
    assert first["user"]["username"] == "kubernetes-admin"
    assert (second["user"], second["objectRef"]["name"], second["responseStatus"]) == ({}, "a", {"code": 401})
    assert log.stat().st_mode & 0o777 == 0o600


async def test_a_port_that_is_taken(begin: Begin, settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ServeError) as refused:
            await begin(port=port).serving()
        assert str(refused.value) == f"Another program uses port {port}; stop it, or choose another port."
        settings.folder.joinpath("port").write_text(str(port))
        assert not (await begin().serving()).server.endswith(f":{port}")


def test_a_server_that_cannot_start_prints_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "file"
    place.touch()
    assert main([str(place)]) == 1
    assert capsys.readouterr() == ("", f"error: {str(place)!r}: File exists\n")


def test_a_temporary_server_ends_with_its_input_and_deletes_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "box"
    command = [sys.executable, "-m", "kubectl_ctrl.sandbox", str(folder), "--nodes", "0", "--temporary"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["pid"] == process.pid
        assert (folder / "kubeconfig").exists()
        process.stdin.close()
        assert process.wait(60) == 0
    assert not folder.exists()
