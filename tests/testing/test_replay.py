from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubectl_ctrl.controllers import foo
from kubectl_ctrl.errors import ControllerError, RecordingError
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.replay.casefile import ReplayCase, dumps
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.replay import assert_replays, case_of, check, read_case, replayed
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World, toy


async def dress(ctx: Context, request: Request) -> None:
    bear = await ctx.read.get(TOYS, request.name)
    if bear is not None:
        await ctx.write.ensure(coat(bear), owner=bear, resource=CONFIGMAPS)


async def dress_warmly(ctx: Context, request: Request) -> None:
    bear = await ctx.read.get(TOYS, request.name)
    if bear is not None:
        await ctx.write.ensure(coat(bear) | {"data": {"lining": "wool"}}, owner=bear, resource=CONFIGMAPS)


def coat(owner: Obj) -> Obj:
    return {"metadata": {"name": f"coat-of-{owner['metadata']['name']}"}, "data": {}}


SPEC = controller("toy", dress).for_(TOYS).owns(CONFIGMAPS)


def recorded(spec: ControllerSpec = SPEC) -> ReplayCase:
    async def main() -> ReplayCase:
        world = World(toy("bear"))
        await world.run(spec, once=True)
        return case_of(world.attempts[0], spec)

    return run_virtual(main())


def test_a_file_becomes_a_test_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(dumps(recorded()))
    assert_replays(tmp_path / "case.json", SPEC)
    assert_replays(str(tmp_path / "case.json"), dress)
    assert read_case(tmp_path / "case.json") == recorded()


def test_it_fails_with_the_field_and_the_line() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_replays(recorded(), dress_warmly)
    text = str(caught.value)
    assert text.startswith("today's code differs from the recording.\n\ntoy default/bear")
    assert "ensure ConfigMap/coat-of-bear  DIFFERS  testing/test_replay.py:" in text
    assert "data.lining   <none> → wool" in text


def test_async_tests_have_it_too() -> None:
    async def main() -> None:
        check(await replayed(recorded_case, SPEC))
        with pytest.raises(AssertionError):
            check(await replayed(recorded_case, dress_warmly))

    recorded_case = recorded()
    asyncio.run(main())


def test_another_controller_or_no_case_is_told(tmp_path: Path) -> None:
    with pytest.raises(ControllerError, match="The case is of controller 'toy', and the code is controller 'foo'"):
        assert_replays(recorded(), foo.CONTROLLER)
    (tmp_path / "case.json").write_text("{}")
    with pytest.raises(RecordingError, match="is not a case file"):
        assert_replays(tmp_path / "case.json", SPEC)
