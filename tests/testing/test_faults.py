from __future__ import annotations

import asyncio

import pytest

from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, NoAnswer, TooSlow
from kubectl_ctrl.testing.faults import ANY, WRITES, Match
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import CONFIGMAPS, DEPLOYMENTS_PATH, MAPS_PATH, MERGE, Caller, configmap, deployment


@pytest.mark.parametrize(
    ("match", "hit"),
    [
        (ANY, True),
        (WRITES, True),
        (Match(verb="create"), False),
        (Match(verb="get patch"), True),
        (Match(plural="deployments"), True),
        (Match(plural="configmaps"), False),
        (Match(namespace="default"), True),
        (Match(name="web"), True),
        (Match(name="other"), False),
        (Match(subresource=""), False),
        (Match(subresource="status"), True),
        (Match(path="/apis/apps/*"), True),
        (Match(path="/api/*"), False),
        (Match(user_agent="caller/*"), True),
        (Match(user_agent="kubectl*"), False),
        (Match(when=lambda request: request.method == "PATCH"), True),
    ],
)
async def test_matching(match: Match, hit: bool, server: ScriptedServer, call: Caller) -> None:
    server.create(deployment("web"))
    fault = server.faults.fail(match, 500)
    code, _ = await call("PATCH", f"{DEPLOYMENTS_PATH}/web/status", {"status": {"replicas": 1}}, kind=MERGE)
    assert (code, fault.hits) == ((500, 1) if hit else (200, 0))


async def test_a_script_ends_after_its_times_or_when_stopped(server: ScriptedServer, call: Caller) -> None:
    fault = server.faults.fail(ANY, 500, times=None)
    for _ in range(5):
        assert (await call("GET", MAPS_PATH))[0] == 500
    fault.stop()
    assert (await call("GET", MAPS_PATH))[0] == 200
    assert fault.hits == 5
    server.faults.fail(ANY, 500, times=None)
    server.faults.clear()
    assert (await call("GET", MAPS_PATH))[0] == 200
    assert repr(server.faults) == "Faults(in force=0)"


@pytest.mark.parametrize(
    ("code", "reason"),
    [(401, "Unauthorized"), (403, "Forbidden"), (500, "InternalError"), (503, "ServiceUnavailable"), (504, "Timeout")],
)
async def test_usual_statuses(code: int, reason: str, server: ScriptedServer, call: Caller) -> None:
    server.faults.fail(ANY, code)
    got, status = await call("GET", MAPS_PATH)
    assert (got, status["kind"], status["code"], status["reason"]) == (code, "Status", code, reason)


async def test_shed_load_is_text_with_a_time(server: ScriptedServer, call: Caller) -> None:
    server.faults.fail(ANY, 429)
    response = await call.respond("GET", MAPS_PATH)
    assert (response.status, response.headers["retry-after"]) == (429, "1")
    assert response.headers["content-type"].startswith("text/plain")
    server.faults.fail(ANY, 429, message="Cannot evict.", retry_after=10)
    code, status = await call("GET", MAPS_PATH)
    assert (code, status["details"]) == (429, {"retryAfterSeconds": 10})


async def test_an_error_after_the_write_took_effect(server: ScriptedServer, call: Caller) -> None:
    server.faults.fail(Match(verb="create"), 504, after_commit=True)
    code, status = await call("POST", MAPS_PATH, configmap("one"))
    assert (code, status["reason"]) == (504, "Timeout")
    assert server.get(CONFIGMAPS, "one") is not None


@pytest.mark.parametrize("after_commit", [True, False])
async def test_a_hanging_write(after_commit: bool, server: ScriptedServer, call: Caller) -> None:
    server.faults.hang(Match(verb="create"), after_commit=after_commit)
    with pytest.raises(TooSlow) as caught:
        await call("POST", MAPS_PATH, configmap("one"))
    assert caught.value.sent
    assert (server.get(CONFIGMAPS, "one") is not None) is after_commit


async def test_exactly_this_answer(server: ScriptedServer, call: Caller) -> None:
    html = HttpResponse(status=200, headers={"content-type": "text/html"}, body=b"<html>")
    server.faults.answer(ANY, html)
    assert await call.respond("GET", MAPS_PATH) == html


async def test_delays(server: ScriptedServer, call: Caller) -> None:
    start = server.clock.elapsed()
    server.faults.delay(Match(verb="create"), before=2, after=3)
    task = asyncio.create_task(call("POST", MAPS_PATH, configmap("one")))
    await server.clock.sleep(1.9)
    assert server.get(CONFIGMAPS, "one") is None
    await server.clock.sleep(0.2)
    assert server.get(CONFIGMAPS, "one") is not None
    assert not task.done()
    await task
    assert server.clock.elapsed() - start == 5
    server.request_delay, server.answer_delay = 20, 20
    with pytest.raises(TooSlow):
        await call("GET", MAPS_PATH)
    assert server.clock.elapsed() - start == 35


async def test_a_request_on_its_way_breaks_when_the_server_goes_down(server: ScriptedServer, call: Caller) -> None:
    server.request_delay = 2
    task = asyncio.create_task(call("POST", MAPS_PATH, configmap("one")))
    await server.clock.sleep(1)
    server.down()
    server.up()
    with pytest.raises(NoAnswer) as caught:
        await task
    assert caught.value.sent
    assert server.get(CONFIGMAPS, "one") is None


async def test_a_cancelled_request_is_not_carried_out(server: ScriptedServer, call: Caller) -> None:
    server.request_delay = 2
    task = asyncio.create_task(call("POST", MAPS_PATH, configmap("one")))
    await server.clock.sleep(1)
    task.cancel()
    await server.clock.sleep(5)
    assert server.objects(CONFIGMAPS) == []


async def test_watches_are_refused_and_lost_like_other_requests(server: ScriptedServer) -> None:
    request = HttpRequest(method="GET", path=MAPS_PATH, query=(("watch", "true"),))
    server.faults.fail(Match(verb="watch"), 403)
    stream = await server.open(request)
    assert stream.status == 403
    assert b"Forbidden" in await stream.read()
    server.faults.lose(Match(verb="watch"))
    with pytest.raises(NoAnswer):
        await server.open(request)
    server.faults.fail(Match(verb="watch"), 503, after_commit=True)
    assert (await server.open(request)).status == 503
    assert server.watches == []
    stream = await server.open(request)
    assert (stream.status, len(server.watches)) == (200, 1)
    await stream.close()
    await stream.close()
    assert server.watches == []
    bad = HttpRequest(method="GET", path=MAPS_PATH, query=(("watch", "1"), ("fieldSelector", "x=y")))
    assert (await server.open(bad)).status == 400
    gone = HttpRequest(method="GET", path="/api/v1/nothings", query=(("watch", "1"),))
    assert (await server.open(gone)).status == 404


async def test_bad_credentials_until_they_are_good_again(server: ScriptedServer, call: Caller) -> None:
    fault = server.unauthorized()
    assert (await call("GET", MAPS_PATH))[0] == 401
    fault.stop()
    assert (await call("GET", MAPS_PATH))[0] == 200


async def test_every_request_is_noted(server: ScriptedServer, call: Caller) -> None:
    await call("GET", MAPS_PATH, limit="5")
    server.faults.lose(ANY)
    with pytest.raises(NoAnswer):
        await call("POST", MAPS_PATH, configmap("one"))
    listed, created = server.requests
    assert (listed.verb, listed.status, listed.query) == ("list", 200, (("limit", "5"),))
    assert (created.verb, created.status, created.audit_id) == ("create", None, "a-1")
    (write,) = server.writes
    assert (write.verb, write.manager, write.audit_id, write.old_version) == ("create", "caller", "a-1", "")
    assert write.new_version == str(server.version)
