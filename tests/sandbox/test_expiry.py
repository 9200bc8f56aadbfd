from __future__ import annotations

from kubectl_ctrl.model.resources import EVENTS
from kubectl_ctrl.sandbox.controllers.expiry import EventExpiry
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import configmap
from tests.sandbox.workloads import names, start


async def test_an_event_lives_for_an_hour_after_its_last_change(server: ScriptedServer) -> None:
    start(server, EventExpiry)
    about = server.create(configmap("one"))
    for _ in range(2):
        server.access("test").event(about, "Tested", "Something happened")
        server.settle()
    first, second = names(server, EVENTS)
    await server.clock.sleep(1800)
    server.change(EVENTS, second, {"count": 2})
    await server.clock.sleep(1801)
    server.settle()
    assert names(server, EVENTS) == [second] != [first]
    await server.clock.sleep(1801)
    server.settle()
    assert names(server, EVENTS) == []
