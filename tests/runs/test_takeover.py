"""Taking over and giving back, with what can go wrong in between; e2e/test_takeover.py sees it on real Kubernetes."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest

from kubectl_ctrl.errors import CtrlError, Refused
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.takeover import ANNOTATION, Takeover, by_hand, give_back, repairs, taken_of
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.stage import Stage
from tests.objects import present
from tests.runs.test_instances import ELSEWHERE, deployment

NAME = "kubectl-ctrl-foo"
ME = identity("r7f3")
KUBECTL = ("kubectl", "--context", "kind-ctrl")


OTHERS = identity("r000")


def takeover(stage: Stage) -> Takeover:
    return Takeover(stage.client(), clock=stage.clock, identity=ME, kubectl=KUBECTL)


def now(stage: Stage) -> Obj:
    return present(stage.server.get(DEPLOYMENTS, NAME))


def standing(stage: Stage) -> tuple[int, Any]:
    """The count, and whose annotation is there."""
    taken = taken_of(now(stage))
    return now(stage)["spec"]["replicas"], taken.holder if taken else None


def note(holder: str, replicas: int = 2) -> Obj:
    text = json.dumps({"holder": holder, "replicas": replicas, "since": "2026-01-01T00:00:00Z"})
    return {"metadata": {"annotations": {ANNOTATION: text}}, "spec": {"replicas": 0}}


def gone() -> str:
    """The signature of a process of this machine that is no more."""
    return re.sub(rf"_{os.getpid()}_", f"_{2**22 + 1}_", ME)


async def test_it_goes_to_zero_with_the_annotation_and_comes_back_without(stage: Stage) -> None:
    stage.install(deployment(NAME, replicas=2))
    mine = takeover(stage)
    await mine.take(now(stage))
    assert standing(stage) == (0, ME)
    await mine.give_all_back()
    assert standing(stage) == (2, None)


async def test_somebody_who_writes_in_between_makes_it_look_again(stage: Stage) -> None:
    stage.install(deployment(NAME, replicas=2))
    stage.server.faults.fail(Match(verb="patch", plural="deployments"), 409, times=2)
    mine = takeover(stage)
    await mine.take(now(stage))
    stage.server.faults.fail(Match(verb="patch", plural="deployments"), 409, times=2)
    await mine.give_all_back()
    assert standing(stage) == (2, None)


async def test_a_lost_answer_is_given_back_as_well(stage: Stage) -> None:
    stage.install(deployment(NAME, replicas=2))
    stage.server.faults.lose(Match(verb="patch", plural="deployments"), after_commit=True)
    mine = takeover(stage)
    await mine.take(now(stage))
    assert standing(stage) == (0, ME)
    await mine.give_all_back()
    assert standing(stage) == (2, None)


async def test_who_was_quicker_keeps_it(stage: Stage) -> None:
    stage.install(deployment(NAME, replicas=2))
    before = now(stage)
    stage.server.change(DEPLOYMENTS, NAME, note(ELSEWHERE))
    mine = takeover(stage)
    with pytest.raises(Refused, match="Another run took it over first"):
        await mine.take(before)
    await mine.give_all_back()
    assert standing(stage) == (0, ELSEWHERE)


async def test_what_another_run_took_over_from_us_is_not_ours_to_give_back(stage: Stage) -> None:
    stage.install(deployment(NAME, replicas=2))
    mine = takeover(stage)
    await mine.take(now(stage))
    stage.server.change(DEPLOYMENTS, NAME, note(ELSEWHERE))
    await mine.give_all_back()
    assert standing(stage) == (0, ELSEWHERE)


async def test_a_count_that_somebody_set_stays(stage: Stage) -> None:
    stage.install(deployment(NAME, replicas=2))
    mine = takeover(stage)
    await mine.take(now(stage))
    stage.server.change(DEPLOYMENTS, NAME, {"spec": {"replicas": 5}})
    await mine.give_all_back()
    assert standing(stage) == (5, None)


async def test_what_cannot_be_given_back_is_told_with_the_line_that_does_it(
    caplog: pytest.LogCaptureFixture, stage: Stage
) -> None:
    stage.install(deployment(NAME, replicas=2))
    mine = takeover(stage)
    await mine.take(now(stage))
    stage.server.down()
    await mine.give_all_back()
    assert by_hand(DEPLOYMENTS.ref(NAME, "default"), 2, KUBECTL) in caplog.text


async def test_what_a_dead_run_left_is_certain_and_what_others_hold_is_not(stage: Stage) -> None:
    client = stage.client()
    running = {ME}
    # OTHERS: its pid is that of a process that lives, as after a crash long ago, and of no run.
    cases = ((gone(), True, False), (ME, False, True), (OTHERS, False, False), (ELSEWHERE, False, False))
    for holder, certain, alive in cases:
        stage.install(deployment(NAME, replicas=2))
        stage.server.change(DEPLOYMENTS, NAME, note(holder, 3))
        (repair,) = await repairs(client, ["foo", "bar"])
        assert (repair.certain, repair.goes_on(running)) == (certain, alive)
        assert await repair.restore(client) == 3
        assert standing(stage) == (3, None)
        assert await repairs(client, ["foo"]) == []
        assert await give_back(client, repair.taken) is None  # it was repaired before
        stage.server.delete(DEPLOYMENTS, NAME)


async def test_what_a_dead_run_left_can_be_gone_on_with(stage: Stage) -> None:
    stage.install(deployment(NAME, replicas=2))
    stage.server.change(DEPLOYMENTS, NAME, note(gone(), 4))
    mine = takeover(stage)
    await mine.take(now(stage))
    assert standing(stage) == (0, ME)
    await mine.give_all_back()
    assert standing(stage) == (4, None)


async def test_without_the_right_it_says_which_and_leaves_it_alone(stage: Stage) -> None:
    stage.install(deployment(NAME, replicas=2))
    stage.server.faults.fail(Match(verb="patch", plural="deployments"), 403)
    with pytest.raises(CtrlError) as caught:
        await takeover(stage).take(now(stage))
    assert caught.value.exit_code == 7
    assert standing(stage) == (2, None)


def test_an_annotation_that_cannot_be_read_is_nobodys() -> None:
    obj = deployment(NAME)
    obj["metadata"]["annotations"] = {ANNOTATION: "{"}
    assert taken_of(obj) is None
