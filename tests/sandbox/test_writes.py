"""The way of a write: drafts, admission, commits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.answers import failure
from kubectl_ctrl.sandbox.drafts import Draft
from kubectl_ctrl.sandbox.requests import ParsedRequest
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import CONFIGMAPS, FOOS_PATH, MAPS_PATH, MERGE, Caller, configmap, foo, foo_crd

Step = Callable[[ParsedRequest, Draft], Awaitable[Obj | None]]


class Scripted:
    """An admission that mutates by a function and refuses objects with a label."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self.seen: list[str] = []

    async def mutate(self, ask: ParsedRequest, draft: Draft) -> Obj | None:
        self.seen.append(f"{ask.verb} {draft.key.name}")
        return await self._step(ask, draft)

    async def validate(self, _: ParsedRequest, draft: Draft) -> None:
        if draft.new is not None and "refused" in (draft.new["metadata"].get("labels") or {}):
            raise failure(403, message="no")


async def _nothing(*_: Any) -> None:
    await asyncio.sleep(0)


def _labelled(name: str) -> Step:
    async def step(_: ParsedRequest, draft: Draft) -> Obj | None:
        new = present(draft.new)
        return {**new, "metadata": {**new["metadata"], "labels": {name: "yes"}, "uid": "other"}}

    return step


async def test_admission_changes_the_object_and_not_the_servers_fields(server: ScriptedServer, call: Caller) -> None:
    server.writer.admission = Scripted(_labelled("added"))
    code, obj = await call("POST", MAPS_PATH, configmap("one", a="1"))
    assert (code, obj["metadata"]["labels"]) == (201, {"added": "yes"})
    assert obj["metadata"]["uid"] != "other"
    owned = [entry["fieldsV1"] for entry in obj["metadata"]["managedFields"]]
    assert owned == [{"f:data": {".": {}, "f:a": {}}}]  # what admission adds has no owner


async def test_admission_refuses(server: ScriptedServer, call: Caller) -> None:
    server.writer.admission = Scripted(_labelled("refused"))
    assert (await call("POST", MAPS_PATH, configmap("one")))[0] == 403
    assert server.objects(CONFIGMAPS) == []


async def test_an_object_is_checked_after_admission(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())

    async def step(_: ParsedRequest, draft: Draft) -> Obj | None:
        return {**present(draft.new), "spec": {"name": "a"}}

    server.writer.admission = Scripted(step)
    code, obj = await call("POST", FOOS_PATH, foo("one"))
    assert (code, obj["spec"]) == (201, {"name": "a", "replicas": 2})


async def test_a_patch_overtaken_by_a_write_is_computed_again(server: ScriptedServer, call: Caller) -> None:
    server.create(configmap("one"))
    admission = Scripted(_nothing)
    server.writer.admission = admission
    patches = [{"data": {"a": "1"}}, {"data": {"b": "2"}}]
    done = await asyncio.gather(*(call("PATCH", f"{MAPS_PATH}/one", patch, kind=MERGE) for patch in patches))
    assert [code for code, _ in done] == [200, 200]
    assert present(server.get(CONFIGMAPS, "one"))["data"] == {"a": "1", "b": "2"}
    assert admission.seen == ["patch one"] * 3


async def test_a_patch_with_a_version_is_refused_when_overtaken(server: ScriptedServer, call: Caller) -> None:
    made = server.create(configmap("one"))
    server.writer.admission = Scripted(_nothing)
    meta = {"resourceVersion": made["metadata"]["resourceVersion"]}
    patches = [{"metadata": meta, "data": {name: "1"}} for name in ("a", "b")]
    done = await asyncio.gather(*(call("PATCH", f"{MAPS_PATH}/one", patch, kind=MERGE) for patch in patches))
    assert sorted(code for code, _ in done) == [200, 409]


async def test_a_patch_that_is_always_overtaken_ends_with_a_conflict(server: ScriptedServer, call: Caller) -> None:
    server.create(configmap("one"))

    async def step(*_: Any) -> None:
        server.writer.admission = None
        server.change(CONFIGMAPS, "one", {"data": {"n": str(server.version)}})
        server.writer.admission = admission

    admission = Scripted(step)
    server.writer.admission = admission
    code, status = await call("PATCH", f"{MAPS_PATH}/one", {"data": {"a": "1"}}, kind=MERGE)
    assert (code, status["reason"], len(admission.seen)) == (409, "Conflict", 5)


async def test_a_created_object_may_exist_after_admission(server: ScriptedServer, call: Caller) -> None:
    server.writer.admission = Scripted(_nothing)
    done = await asyncio.gather(*(call("POST", MAPS_PATH, configmap("one")) for _ in range(2)))
    assert sorted(code for code, _ in done) == [201, 409]


async def test_a_direct_write_cannot_wait_for_admission(server: ScriptedServer) -> None:
    server.writer.admission = Scripted(_nothing)
    with pytest.raises(RuntimeError, match="waits for admission"):
        server.create(configmap("one"))


async def test_a_dry_run_passes_admission_and_stores_nothing(server: ScriptedServer, call: Caller) -> None:
    admission = Scripted(_labelled("added"))
    server.writer.admission = admission
    code, obj = await call("POST", MAPS_PATH, configmap("one"), dryRun="All")
    assert (code, obj["metadata"]["labels"], admission.seen) == (201, {"added": "yes"}, ["create one"])
    assert server.objects(CONFIGMAPS) == []


async def test_generated_names_differ_and_are_reproducible(call: Caller) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "web-"}}
    names = [(await call("POST", MAPS_PATH, body))[1]["metadata"]["name"] for _ in range(3)]
    again = ScriptedServer(FakeClock())
    assert [again.create(body)["metadata"]["name"] for _ in range(3)] == names
    assert len(frozenset(names)) == 3
    assert all(len(name) == len("web-") + 5 for name in names)


async def test_a_taken_generated_name_is_generated_again(
    server: ScriptedServer, call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "web-"}}
    random = server.writer.random
    letters = iter("b" * 2 + "c" + "b" * 8)
    monkeypatch.setattr(random, "choices", lambda *_, k: [next(letters)] * k)
    assert (await call("POST", MAPS_PATH, body))[1]["metadata"]["name"] == "web-bbbbb"
    assert (await call("POST", MAPS_PATH, body))[1]["metadata"]["name"] == "web-ccccc"
    code, status = await call("POST", MAPS_PATH, body)
    assert (code, status["reason"], status["details"]["retryAfterSeconds"]) == (409, "AlreadyExists", 1)
    assert status["message"] == (
        'configmaps "web-bbbbb" already exists, the server was not able to generate a unique name for the object'
    )
