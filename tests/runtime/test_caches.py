from __future__ import annotations

from collections.abc import Iterable

import pytest

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.caches import selector_of
from kubectl_ctrl.runtime.contract import Context
from tests.runtime.doors import doors
from tests.runtime.toy import CONFIGMAPS, TOYS, at, do_nothing, owned
from tests.runtime.world import World, toy


async def test_two_controllers_file_the_same_objects_under_one_name_each_in_its_own_way() -> None:
    found: dict[str, list[str]] = {}
    world = World(toy("bear", colour="brown", size="big"))

    def spec(name: str, part: str) -> ControllerSpec:
        def values(obj: Obj) -> Iterable[str]:
            return (obj["spec"][part],)

        async def reconcile(ctx: Context, request: Request) -> None:
            found[name] = [name_of(one) for one in await ctx.read.indexed(TOYS, "look", "brown")]

        return controller(name, reconcile).for_(TOYS).index(TOYS, "look", values)

    async with world.running(spec("colours", "colour"), spec("sizes", "size")):
        await world.rest()
    assert found == {"colours": ["bear"], "sizes": []}


async def test_the_newest_state_of_an_object_is_the_caches_unless_it_is_of_another(world: World) -> None:
    bear = world.server.create(toy("bear"))
    newer = world.server.change(TOYS, "bear", {"spec": {"size": 2}})
    async with doors(world, controller("toy", do_nothing).for_(TOYS)) as its:
        assert its.caches.newest(bear, TOYS)["spec"] == newer["spec"]
        stranger = at(bear, "1", metadata={"uid": "another"})
        assert its.caches.newest(stranger, TOYS) is stranger
        uncached = owned(CONFIGMAPS, "settings", bear)
        assert its.caches.newest(uncached, CONFIGMAPS) is uncached
        assert repr(its.caches) == "Caches(toy, resources=1)"


def test_selectors_come_in_three_forms_and_mistakes_are_told() -> None:
    assert selector_of("a=b,c=d") == selector_of({"c": "d", "a": "b"}) == Selector.parse("a=b,c=d")
    assert selector_of(Selector()) == selector_of("") == selector_of({})
    with pytest.raises(UsageError):
        selector_of("a in (")
