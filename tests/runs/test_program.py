"""`await run(CONTROLLER)` in a program, over HTTP on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl import CONFIGMAPS, Context, ControllerError, ControllerSpec, Obj, Refused, Request, controller, run
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.model.objects import labels_of
from kubectl_ctrl.testing.server import ScriptedServer
from tests.client import loopback
from tests.client.served import http
from tests.kubeconfig.kubeconfigs import kubeconfig, written

pytestmark = pytest.mark.real_loop


SETTINGS: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}


class Place:
    """A cluster, the kubeconfig of a program, and what the program does."""

    def __init__(self, folder: Path, server: ScriptedServer, url: str) -> None:
        self.folder = folder
        self.server = server
        self.url = url
        self.points("kind-test")

    def points(self, context: str) -> None:
        self._config = str(written(self.folder, kubeconfig(cluster={"server": self.url}, name=context)))

    @asynccontextmanager
    async def running(self, *specs: ControllerSpec, **options: Any) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(run(*specs, kubeconfig=self._config, **options))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def labelled(self, running: asyncio.Task[None]) -> None:
        """Wait until the reconciler has written its label; raises what the run raises before."""
        changed = asyncio.Event()
        self.server.storage.listeners.append(lambda *_: changed.set())
        running.add_done_callback(lambda _: changed.set())
        async with asyncio.timeout(60):
            while "seen" not in labels_of(self.server.get(CONFIGMAPS, "settings") or SETTINGS):
                if running.done():
                    running.result()
                changed.clear()
                await changed.wait()


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / f"{name.lower()}-home"))
    server = ScriptedServer(SystemClock())
    server.create(SETTINGS)
    async with loopback.serving(http(server)) as box:
        yield Place(tmp_path, server, box.url)


async def cancelled(running: asyncio.Task[None]) -> None:
    """Cancel it, and wait until it reports that it stops and what is in progress."""
    log, stopping = logging.getLogger("kubectl_ctrl.runs.program"), asyncio.Event()

    def heard(record: logging.LogRecord) -> bool:
        if record.__dict__["action"] == "stopping":
            stopping.set()
        return True

    log.addFilter(heard)
    log.setLevel(logging.INFO)
    try:
        running.cancel()
        async with asyncio.timeout(60):
            await stopping.wait()
        assert not running.done()
    finally:
        log.removeFilter(heard)
        log.setLevel(logging.NOTSET)


async def label(ctx: Context, request: Request) -> None:
    if found := await ctx.read.get(CONFIGMAPS, request.name):
        await ctx.write.patch(found, {"metadata": {"labels": {"seen": "yes"}}})


LABELS = controller("labels", label).for_(CONFIGMAPS)


async def test_it_runs_is_recorded_and_ends_by_cancellation(tmp_path: Path, place: Place) -> None:
    async with place.running(LABELS) as task:
        await place.labelled(task)
    assert task.cancelled()
    [recording] = tmp_path.rglob("history.db")
    with Recording.open(recording) as reader:
        [recorded] = reader.runs()
    assert [(one.name, one.code) for one in recorded.controllers] == [("labels", __file__)]


async def test_a_cancellation_lets_the_reconcile_in_progress_finish(place: Place) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(ctx: Context, request: Request) -> None:
        begun.set()
        await go_on.wait()
        await label(ctx, request)

    async with place.running(controller("slow", slow).for_(CONFIGMAPS)) as task:
        await begun.wait()
        await cancelled(task)
        go_on.set()
        await asyncio.wait([task])
        assert task.cancelled()
    assert labels_of(place.server.get(CONFIGMAPS, "settings") or {}) == {"seen": "yes"}


async def test_a_second_cancellation_cancels_the_reconcile_in_progress(place: Place) -> None:
    begun = asyncio.Event()

    async def endless(_ctx: Context, _request: Request) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with place.running(controller("endless", endless).for_(CONFIGMAPS)) as task:
        await begun.wait()
        await cancelled(task)
    assert task.cancelled()


async def test_a_cluster_that_is_not_local_is_refused_unless_it_is_allowed(place: Place) -> None:
    place.points("staging")
    for allowed, message in (
        ("", "This cluster is not local, and changes to it are not allowed."),
        ("production", "The allowed context 'production' is not the context in use."),
    ):
        async with place.running(LABELS, allow_context=allowed) as task:
            await asyncio.wait([task])
            refused = task.exception()
            assert isinstance(refused, Refused)
            assert refused.message == message
            assert refused.next_step == "pass allow_context='staging' if that is the cluster you mean"
    assert place.server.requests == []
    async with place.running(LABELS, allow_context="staging") as task:
        await place.labelled(task)


async def test_a_controller_that_runs_already_is_refused(place: Place) -> None:
    async with place.running(LABELS) as first:
        await place.labelled(first)
        async with place.running(LABELS) as second:
            await asyncio.wait([second])
            assert "labels" in str(second.exception())
            assert isinstance(second.exception(), Refused)


def test_it_needs_a_controller() -> None:
    with pytest.raises(ControllerError, match=r"run\(\) needs a controller"):
        asyncio.run(run())


def test_it_loads_nothing_of_the_command_line() -> None:
    code = "import sys, json, kubectl_ctrl; kubectl_ctrl.run; print(json.dumps(list(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {".".join(name.split(".")[:2]) for name in json.loads(ran.stdout)}
    assert loaded & {"kubectl_ctrl.cli", "kubectl_ctrl.render", "click"} == set()
