from __future__ import annotations

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.testing.server import ScriptedServer
from tests.testing.callers import Caller, deployment, run


def status(server: ScriptedServer) -> Obj:
    obj = server.get(DEPLOYMENTS, "web")
    assert obj is not None
    return obj.get("status") or {}


def test_the_status_follows_the_spec() -> None:
    async def main(server: ScriptedServer, _call: Caller) -> None:
        server.play_deployments()
        server.create(deployment("web", replicas=2))
        assert status(server)["availableReplicas"] == 2
        assert [condition["type"] for condition in status(server)["conditions"]] == ["Available", "Progressing"]
        server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
        assert "availableReplicas" not in status(server)
        assert status(server)["observedGeneration"] == 2
        server.delete(DEPLOYMENTS, "web")
        assert server.objects(DEPLOYMENTS) == []

    run(main)


def test_it_rests_once_it_has_followed() -> None:
    async def main(server: ScriptedServer, _call: Caller) -> None:
        server.play_deployments()
        server.create(deployment("web"))
        version = server.version
        await server.clock.sleep(60)
        server.change(DEPLOYMENTS, "web", {"metadata": {"labels": {"a": "b"}}})
        assert server.version == version + 1

    run(main)


def test_nothing_is_played_unless_asked_for() -> None:
    async def main(server: ScriptedServer, _call: Caller) -> None:
        server.create(deployment("web"))
        assert status(server) == {}
        server.play_deployments()
        assert status(server)["readyReplicas"] == 1
        server.play_deployments(False)
        server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 3}})
        assert status(server)["readyReplicas"] == 1

    run(main)
