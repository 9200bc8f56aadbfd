"""Nothing that was answered is lost: the file is cut at every byte, the disk is full, and answers wait for the disk."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import NAMESPACES
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.sandbox import journal
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.endpoint import Endpoint
from kubectl_ctrl.sandbox.journal import DurableTransport, Journal, JournalError
from kubectl_ctrl.testing.clock import FakeClock
from tests.objects import present
from tests.sandbox.callers import CONFIGMAPS, FOOS, MAPS_PATH, configmap, foo, foo_crd, owned_by


def state(server: Endpoint) -> dict[str, dict[str, Obj]]:
    return {
        table: {str(key): obj for key, obj in rows.items()} for table, rows in server.storage.tables.items() if rows
    }


def resumed(path: Path) -> Endpoint:
    saved = journal.read(path)
    assert saved is not None
    server = Endpoint(FakeClock())
    server.resume(saved.tables, saved.version)
    return server


@pytest.fixture
async def server() -> Endpoint:
    return Endpoint(FakeClock())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal"


async def test_a_server_continues_where_another_one_was_killed(server: Endpoint, path: Path) -> None:
    server.create(configmap("before", x="é\r\u2028"))
    Journal(path, server.storage)
    server.create(foo_crd())
    owner = server.create(foo("a", name="a"))
    server.create(configmap("gone"))
    server.delete(CONFIGMAPS, "gone")
    child = configmap("child")
    child["metadata"]["ownerReferences"] = [owned_by(owner)]
    server.create(child)
    server.change(CONFIGMAPS, "child", {"data": {"y": "z"}})
    other = resumed(path)
    assert (state(other), other.version) == (state(server), server.version)
    assert path.stat().st_mode & 0o777 == 0o600
    Journal(path, other.storage)
    other.delete(FOOS, "a")
    assert other.get(CONFIGMAPS, "child") is None
    assert state(resumed(path)) == state(other)


async def test_a_file_that_is_cut_at_any_byte_has_every_whole_change(server: Endpoint, path: Path) -> None:
    Journal(path, server.storage)
    expected = {path.stat().st_size: (server.version, state(server))}

    def note() -> None:
        expected[path.stat().st_size] = (server.version, state(server))

    server.create(configmap("a"))
    note()
    server.change(CONFIGMAPS, "a", {"data": {"x": "y"}})
    note()
    server.delete(CONFIGMAPS, "a")
    note()
    content = path.read_bytes()
    for cut in range(min(expected), len(content) + 1):
        for end in (b"", b"\0\0"):
            path.write_bytes(content[:cut] + end)
            other = resumed(path)
            assert (other.version, state(other)) == expected[max(size for size in expected if size <= cut)]


async def test_versions_go_on_after_a_deletion(server: Endpoint, path: Path) -> None:
    server.create(configmap("a"))
    server.delete(CONFIGMAPS, "a")
    Journal(path, server.storage)
    other = resumed(path)
    assert other.version == server.version
    assert other.storage.compacted == server.version


async def test_a_damaged_file_is_refused(server: Endpoint, path: Path) -> None:
    Journal(path, server.storage)
    server.create(configmap("a"))
    server.create(configmap("b"))
    lines = path.read_bytes().splitlines(keepends=True)
    for number in (0, len(lines) - 2):
        path.write_bytes(b"".join([*lines[:number], b"{}x\n", *lines[number + 1 :]]))
        with pytest.raises(JournalError, match=f"Line {number + 1} of .* is damaged"):
            journal.read(path)


async def test_objects_without_their_crd_are_dropped(server: Endpoint, path: Path) -> None:
    server.create(foo_crd())
    server.create(foo("a", name="a"))
    saved = {table: dict(rows) for table, rows in server.storage.tables.items()}
    del saved["customresourcedefinitions.apiextensions.k8s.io"]
    other = Endpoint(FakeClock())
    other.resume(saved, server.version)
    assert "foos.example.com" not in other.storage.tables


async def test_a_full_disk_refuses_the_change_and_nothing_else(
    server: Endpoint, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal(path, server.storage)
    server.create(configmap("a"))
    before, version, content = state(server), server.version, path.read_bytes()
    write = os.write

    def fill(handle: int, data: memoryview) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, data[:-19])

    monkeypatch.setattr(os, "write", fill)
    body = json.dumps(configmap("b")).encode()
    response = await server.send(HttpRequest(method="POST", path=MAPS_PATH, body=body))
    assert response.status == 500
    refusal = json.loads(response.body)
    assert refusal["reason"] == "InternalError"
    assert refusal["message"] == f"Internal error occurred: '{path}' cannot be written: No space left on device"
    assert (state(server), server.version, path.read_bytes()) == (before, version, content)
    monkeypatch.undo()
    server.create(configmap("c"))
    assert state(resumed(path)) == state(server)


async def test_the_file_is_compacted_when_most_of_it_is_old(server: Endpoint, path: Path) -> None:
    book = Journal(path, server.storage)
    server.create(configmap("a"))
    for number in range(30):
        server.change(CONFIGMAPS, "a", {"data": {"x": f"{number}" * 60_000}})
    large = path.stat().st_size
    await book.durable()
    assert path.stat().st_size < large / 10
    server.change(CONFIGMAPS, "a", {"data": {"x": "y"}})
    await book.close()
    assert state(resumed(path)) == state(server)


class Disk:
    """Counts syncs, which wait until they are let go."""

    def __init__(self) -> None:
        self.syncs = 0
        self.go = asyncio.Event()
        self.error: OSError | None = None

    async def to_thread(self, function: Any, *arguments: Any) -> None:
        self.syncs += 1
        await self.go.wait()
        if self.error:
            raise self.error


async def test_answers_and_events_wait_for_the_disk_together(
    server: Endpoint, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk()
    monkeypatch.setattr(asyncio, "to_thread", disk.to_thread)
    served = DurableTransport(server, Journal(path, server.storage))
    query = (("watch", "1"), ("resourceVersion", str(server.version)))
    stream = await served.open(HttpRequest(method="GET", path=MAPS_PATH, query=query))
    assert stream.status == 200
    requests = [
        HttpRequest(method="POST", path=MAPS_PATH, body=json.dumps(configmap(name)).encode()) for name in "abcdef"
    ]
    requests.append(HttpRequest(method="GET", path=f"{MAPS_PATH}/a"))
    events = stream.batches()
    tasks = [asyncio.ensure_future(served.send(request)) for request in requests]
    event = asyncio.ensure_future(anext(events))
    for _ in range(50):
        await asyncio.sleep(0)
    assert not any(task.done() for task in [*tasks, event])
    disk.go.set()
    assert [(await task).status for task in tasks] == [201] * 6 + [200]
    assert len(await event) == 6
    assert disk.syncs <= 2
    await stream.close()


async def test_after_a_failed_sync_nothing_is_promised(
    server: Endpoint, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk()
    disk.error = OSError(errno.EIO, os.strerror(errno.EIO))
    disk.go.set()
    monkeypatch.setattr(asyncio, "to_thread", disk.to_thread)
    served = DurableTransport(server, Journal(path, server.storage))
    body = json.dumps({"metadata": {"name": "a"}}).encode()
    for method in ("POST", "GET"):
        response = await served.send(HttpRequest(method=method, path="/api/v1/namespaces", body=body))
        assert response.status == 500
        assert "Input/output error" in json.loads(response.body)["message"]
    response = await served.send(HttpRequest(method="DELETE", path="/api/v1/namespaces/a"))
    assert response.status == 500
    assert server.get(NAMESPACES, "a") is not None


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EIO])
async def test_a_folder_that_cannot_be_synced_loses_nothing(
    server: Endpoint, path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """EINVAL: this file system has no such thing. Else nobody knows which file a power failure would leave."""
    file = Journal(path, server.storage)
    sync = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(code, os.strerror(code))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    acknowledged = list[str]()
    with suppress(JournalError, Refusal):
        for number in range(40):
            server.create(configmap(f"m{number}", a="x" * 50_000))
            server.delete(CONFIGMAPS, f"m{number}")
            server.create(configmap(f"n{number}"))
            await file.durable()
            acknowledged.append(f"n{number}")
    assert (len(acknowledged) == 40) == (code == errno.EINVAL)
    saved = present(journal.read(path))
    assert {f"n{number}" for number in range(len(acknowledged))} <= {key.name for key in saved.tables["configmaps"]}
