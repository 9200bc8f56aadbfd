from __future__ import annotations

import asyncio
import logging
import re

import pytest

from kubectl_ctrl.client.options import DeleteOptions, PatchKind, Scope, WriteOptions
from kubectl_ctrl.errors import Forbidden, NotFound, Replaced
from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.objects import uid_of, version_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, SECRETS
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.server import ScriptedServer
from tests.client.rig import CONFIGMAPS, Rig, answer, configmap, on_answers, status
from tests.objects import present

REF = CONFIGMAPS.ref("one", "default")
ALL = Match(plural="configmaps")


async def test_every_call_is_told_twice(rig: Rig, server: ScriptedServer) -> None:
    server.answer_delay = 2.0
    made = await rig.client.create(CONFIGMAPS, configmap(a="1"), WriteOptions(old_version="5"))
    (leaving, first), (done, last) = rig.notes
    assert (first, last) == (False, True)
    assert leaving == Call(
        id="r7f3-12.1",
        verb="create",
        resource=CONFIGMAPS,
        namespace="default",
        name="one",
        started=rig.clock.now() - 2.0,
        sent=configmap(a="1"),
    )
    assert done.id == leaving.id
    assert (done.code, done.took, done.sends) == (201, 2.0, 1)
    assert (done.uid, done.new_version, done.answer) == (uid_of(made), version_of(made), made)
    assert done.write


async def test_a_refusal_is_told_with_code_and_reason(rig: Rig, server: ScriptedServer) -> None:
    with pytest.raises(NotFound):
        await rig.client.get(DEPLOYMENTS.ref("d", "default").sub("status"))
    call = rig.calls[0]
    assert (call.verb, call.subresource, call.code, call.reason) == ("get", "status", 404, "NotFound")
    assert "404 NotFound" in call.error
    assert call.answer is None


async def test_a_call_without_an_answer_has_no_code(rig: Rig, server: ScriptedServer) -> None:
    server.faults.lose(ALL, times=None)
    with pytest.raises(Exception, match="There was no answer"):
        await rig.client.get(REF)
    assert [answered for _, answered in rig.notes] == [False, True]
    assert (rig.calls[0].code, rig.calls[0].sends) == (None, 3)
    assert rig.calls[0].error.startswith("There was no answer to get configmaps default/one.")


async def test_a_cancelled_call_is_told_as_ended_without_an_answer(rig: Rig, server: ScriptedServer) -> None:
    server.faults.hang(ALL)
    task = asyncio.create_task(rig.client.create(CONFIGMAPS, configmap()))
    await rig.clock.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert rig.told == ["create None 1"]
    assert rig.calls[0].error == "It was interrupted by CancelledError."
    assert rig.calls[0].took == 1.0


async def test_a_listener_that_raises_hurts_nobody(
    caplog: pytest.LogCaptureFixture, rig: Rig, server: ScriptedServer
) -> None:
    def note(call: Call, answered: bool) -> None:
        raise RuntimeError(f"{call.verb} {answered}")

    with caplog.at_level(logging.ERROR, logger="kubectl_ctrl"):
        made = await rig.base.scoped(Scope(note=note)).create(CONFIGMAPS, configmap())
        assert made == server.get(CONFIGMAPS, "one")
    assert [record.getMessage() for record in caplog.records] == ["call listener failed"] * 2


async def test_lists_and_watches_are_told_without_their_objects(rig: Rig, server: ScriptedServer) -> None:
    server.create(configmap())
    listed = await rig.client.list(CONFIGMAPS)
    async with rig.client.watch(CONFIGMAPS) as watch:
        await anext(watch)
    assert rig.told == ["list 200 1", "watch 200 1"]
    assert [call.answer for call in rig.calls] == [None, None]
    assert rig.calls[0].new_version == listed.version


async def test_a_delete_knows_the_uid_that_is_gone(rig: Rig, server: ScriptedServer) -> None:
    made = server.create(configmap())
    await rig.client.delete(REF)
    assert (rig.calls[0].uid, rig.calls[0].new_version) == (uid_of(made), "")


async def test_a_dry_run_is_told_as_one(rig: Rig, server: ScriptedServer) -> None:
    await rig.client.create(CONFIGMAPS, configmap(), WriteOptions(dry_run=True))
    assert rig.calls[0].dry_run
    assert not rig.calls[0].write
    assert server.objects(CONFIGMAPS) == []


# --- Audit-IDs


async def test_audit_ids_count_calls_and_stay_over_resends(rig: Rig, server: ScriptedServer) -> None:
    await rig.client.create(CONFIGMAPS, configmap())
    server.faults.fail(ALL, 503, retry_after=1)
    await rig.client.get(REF)
    server.faults.lose(Match(verb="delete"))
    await rig.client.delete(REF, uid_options(server))
    ids = [handled.audit_id for handled in server.requests]
    assert ids == ["r7f3-12.1", "r7f3-12.2", "r7f3-12.2", "r7f3-12.3", "r7f3-12.3"]


def uid_options(server: ScriptedServer) -> DeleteOptions:
    obj = present(server.get(CONFIGMAPS, "one"))
    return DeleteOptions(uid=uid_of(obj))


async def test_reading_back_is_a_call_of_its_own(rig: Rig, server: ScriptedServer) -> None:
    server.faults.lose(Match(verb="create"))
    await rig.client.create(CONFIGMAPS, configmap())
    assert [(call.id, call.verb) for call in rig.calls] == [("r7f3-12.2", "get"), ("r7f3-12.1", "create")]


async def test_scopes_count_for_themselves_and_those_without_a_name_together(rig: Rig, server: ScriptedServer) -> None:
    other = rig.base.scoped(Scope(prefix="r7f3-13"))
    for client in (rig.client, other, rig.client, rig.base, rig.base.scoped(Scope())):
        await client.list(CONFIGMAPS)
    ids = [handled.audit_id for handled in server.requests]
    assert ids[:3] == ["r7f3-12.1", "r7f3-13.1", "r7f3-12.2"]
    own = present(re.fullmatch(r"([a-z0-9]{8})\.1", ids[3]))
    assert ids[4] == f"{own[1]}.2"


async def test_an_audit_id_fits_and_is_safe_in_a_header(rig: Rig, server: ScriptedServer) -> None:
    client = rig.base.scoped(Scope(prefix="x" * 100 + "\r\nevil: 1"))
    for _ in range(12):
        await client.list(CONFIGMAPS)
    ids = [handled.audit_id for handled in server.requests]
    assert {len(one) for one in ids} == {64}
    assert len(dict.fromkeys(ids)) == 12
    await rig.base.scoped(Scope(prefix="a b\r\nc:d")).list(CONFIGMAPS)
    assert server.requests[-1].audit_id == "a-b--c-d.1"


# --- heads and counters


async def test_the_head_of_a_request() -> None:
    rig, canned = on_answers(answer(configmap()), answer(configmap()))
    await rig.client.patch(REF, configmap(), PatchKind.APPLY, WriteOptions(manager="me"))
    await rig.client.get(REF)
    apply, get = canned.requests
    assert dict(apply.headers) == {
        "accept": "application/json",
        "content-type": "application/apply-patch+yaml",
        "user-agent": "kubectl-ctrl/0.1 (test)",
        "audit-id": "r7f3-12.1",
    }
    assert dict(get.headers) == {
        "accept": "application/json",
        "user-agent": "kubectl-ctrl/0.1 (test)",
        "audit-id": "r7f3-12.2",
    }
    assert (
        apply.body
        == b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"default"},"data":{}}'
    )
    assert (apply.deadline, get.deadline) == (22.5, 30.0)
    assert get.body is None


async def test_another_agent_shares_everything_else(rig: Rig, server: ScriptedServer) -> None:
    other = rig.client.as_agent("kubectl-ctrl/0.1 (other)")
    await other.list(CONFIGMAPS)
    await rig.client.list(CONFIGMAPS)
    assert [handled.user_agent for handled in server.requests] == [
        "kubectl-ctrl/0.1 (other)",
        "kubectl-ctrl/0.1 (test)",
    ]
    assert other.counters is rig.base.counters
    assert other.discovery is rig.base.discovery
    assert other.scope is rig.client.scope


async def test_counters(rig: Rig, server: ScriptedServer) -> None:
    counters = rig.base.counters
    assert repr(counters) == "Counters(sent=0, resends=0, watches_open=0)"
    await rig.client.create(CONFIGMAPS, configmap())
    with pytest.raises(NotFound):
        await rig.base.get(CONFIGMAPS.ref("none", "default"))
    server.faults.lose(ALL, times=None)
    with pytest.raises(Exception, match="There was no answer"):
        await rig.client.get(REF)
    assert counters.requests == {
        ("create", "POST", "201"): 1,
        ("get", "GET", "404"): 1,
        ("get", "GET", ""): 3,
    }
    assert (counters.sent, counters.resends) == (5, 2)
    assert counters.bytes_out > 50
    assert counters.bytes_in > 100
    assert repr(rig.client) == "Client('kubectl-ctrl/0.1 (test)', Counters(sent=5, resends=2, watches_open=0))"


# --- what must never be said

CANARY = "hunter2-canary"


async def test_no_record_and_no_repr_shows_a_body(caplog: pytest.LogCaptureFixture, rig: Rig) -> None:
    with caplog.at_level(logging.DEBUG):
        secret = {"metadata": {"name": "s", "namespace": "default"}, "stringData": {"password": CANARY}}
        made = await rig.client.create(SECRETS, secret)
        await rig.client.get(SECRETS.ref("s", "default"))
        with pytest.raises(Replaced):
            await rig.client.replace(
                SECRETS.ref("s", "default"), {**made, "metadata": {**made["metadata"], "uid": "x"}}
            )
        for call, _ in rig.notes:
            assert CANARY not in repr(call)
            assert CANARY not in call.error
        assert rig.notes[0][0].sent is not None
        assert CANARY not in repr(rig.client)
    assert CANARY not in caplog.text


async def test_an_error_of_another_kind_is_not_quoted() -> None:
    rig, _canned = on_answers(RuntimeError(f"Authorization: Bearer {CANARY}"))
    with pytest.raises(RuntimeError):
        await rig.client.get(REF)
    assert rig.calls[0].error == "It was interrupted by RuntimeError."


async def test_forbidden_names_the_rule() -> None:
    rig, _canned = on_answers(answer(status(403, "Forbidden"), 403))
    with pytest.raises(Forbidden) as caught:
        await rig.client.get(DEPLOYMENTS.ref("d", "x").sub("scale"))
    assert 'resources ["deployments/scale"], verbs ["get"]' in caught.value.next_step
