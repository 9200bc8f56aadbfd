"""Controllers of one run that act as different people: what one may see, the other may not."""

from __future__ import annotations

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.runtime.services import Services
from tests.runtime.managers import nothing, spec_of
from tests.runtime.world import World, toy


async def test_each_client_has_caches_of_its_own_and_the_rest_share(world: World) -> None:
    other = Client(world.server, clock=world.clock, rng=world.rng, user_agent="somebody-else")
    specs = [spec_of(world, nothing, name) for name in ("one", "two", "three")]
    world.server.create(toy("t"))
    services = Services(clients={"two": other})
    async with world.running(*specs, services=services) as running:
        await world.rest(1)
        one, two, three = running.manager.members
        assert set(one.informers) == set(three.informers)
        assert not set(one.informers) & set(two.informers)
        assert all(informer.synced for member in running.manager.members for informer in member.informers)
        watching = {handled.user_agent for handled in world.server.requests if "watch" in str(handled)}
        assert {"somebody-else", "test-run"} <= watching
