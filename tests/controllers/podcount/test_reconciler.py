"""Podcount against a server in memory: which pods count, how often it writes, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl.controllers import podcount as package
from kubectl_ctrl.controllers.podcount.reconciler import CONTROLLER, LABEL
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.objects import Obj, labels_of
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.resources import PODS, REPLICASETS
from kubectl_ctrl.testing.clock import START_OF_2026, FakeClock
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.stage import Stage
from tests.objects import present

EXAMPLE: Obj = yaml.safe_load((Path(package.__file__).parent / "example.yaml").read_text())


def replicaset(name: str = "web") -> Obj:
    return {**EXAMPLE, "metadata": {"name": name}}


def pod(name: str, owner: Obj | None, **extra: Any) -> Obj:
    meta: Obj = {"name": name, "namespace": "default", "labels": {"app": "podcount-sample"}}
    if owner is not None:
        meta["ownerReferences"] = [owner_reference(owner)]
    meta |= extra.pop("metadata", {})
    spec = {"containers": [{"name": "c", "image": "busybox:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, **extra}


class Counting(Stage):
    """A stage with one ReplicaSet, whose pods the test plays."""

    def __init__(self) -> None:
        super().__init__()
        self.web = self.server.create(replicaset())
        self.server.writes.clear()

    def put(self, *names: str, **extra: Any) -> None:
        for name in names:
            self.server.create(pod(name, self.web, **extra))

    def finish(self, name: str, phase: str = "Succeeded") -> None:
        self.server.change(PODS, name, {"status": {"phase": phase}}, subresource="status")

    def label(self, name: str = "web") -> str | None:
        found = present(self.server.get(REPLICASETS, name))
        return labels_of(found).get(LABEL)

    @property
    def written(self) -> int:
        return len(list(self.writes()))


@pytest.fixture
async def stage() -> Counting:
    return Counting()


async def test_the_label_follows_the_pods(stage: Counting) -> None:
    async with stage.running(CONTROLLER):
        await stage.rest(5)
        assert stage.label() == "0"
        stage.put("a", "b", "c")
        await stage.rest(5)
        assert stage.label() == "3"
        stage.server.delete(PODS, "b")
        await stage.rest(5)
        assert stage.label() == "2"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_what_has_ended_or_is_ending_does_not_count(phase: str, stage: Counting) -> None:
    stage.put("a", "b", "c", metadata={"finalizers": ["example.com/hold"]})
    async with stage.running(CONTROLLER):
        await stage.rest(5)
        assert stage.label() == "3"
        stage.finish("a", phase)
        await stage.rest(5)
        assert stage.label() == "2"
        stage.server.delete(PODS, "b")
        assert stage.server.get(PODS, "b"), "its finalizer holds it"
        await stage.rest(5)
        assert stage.label() == "1"


async def test_lookalikes_and_the_pods_of_others_do_not_count(stage: Counting) -> None:
    other = stage.server.create(replicaset("other"))
    stage.put("a")
    stage.server.create(pod("lookalike", None))
    stage.server.create(pod("others", other))
    before = {**stage.web, "metadata": {**stage.web["metadata"], "uid": "of-one-that-had-this-name-before"}}
    stage.server.collecting = False
    stage.server.create(pod("left-over", before))
    async with stage.running(CONTROLLER):
        await stage.rest(5)
        assert (stage.label(), stage.label("other")) == ("1", "1")
        change = {"metadata": {"ownerReferences": [owner_reference(stage.web)]}}
        stage.server.change(PODS, "lookalike", change)
        await stage.rest(5)
        assert stage.label() == "2", "one that is adopted counts"
        stage.server.change(PODS, "lookalike", {"metadata": {"ownerReferences": None}})
        await stage.rest(5)
        assert stage.label() == "1", "and one that is released does not"


async def test_nothing_but_the_label_is_touched(stage: Counting) -> None:
    stage.server.change(REPLICASETS, "web", {"metadata": {"labels": {"team": "blue"}, "annotations": {"a": "b"}}})
    before = stage.server.get(REPLICASETS, "web")
    stage.put("a")
    async with stage.running(CONTROLLER):
        await stage.rest(5)
    after = stage.server.get(REPLICASETS, "web")
    assert before is not None
    assert after is not None
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])
    assert labels_of(after) == {"team": "blue", LABEL: "1"}
    assert after["metadata"]["annotations"] == {"a": "b"}


async def test_what_cannot_matter_wakes_nobody(stage: Counting) -> None:
    stage.put("a", "b")
    async with stage.running(CONTROLLER) as running:
        await stage.rest(5)
        attempts = len(stage.attempts)
        stage.server.change(PODS, "a", {"status": {"phase": "Running"}}, subresource="status")
        stage.server.change(PODS, "a", {"metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}}})
        stage.server.change(REPLICASETS, "web", {"status": {"replicas": 2}}, subresource="status")
        stage.server.change(REPLICASETS, "web", {"spec": {"replicas": 2}})
        await stage.rest(60)
        assert len(stage.attempts) == attempts
        (member,) = running.manager.members
        assert dict(member.controller.held_back) == {"labels changed": 2, "owner changed": 2}


async def test_the_label_of_somebody_else_is_set_right(stage: Counting) -> None:
    stage.put("a")
    async with stage.running(CONTROLLER):
        await stage.rest(5)
        for wrong in ("7", None):
            stage.server.change(REPLICASETS, "web", {"metadata": {"labels": {LABEL: wrong}}})
            await stage.rest(5)
            assert stage.label() == "1"


async def test_f12_its_own_label_is_known_before_the_watch_tells_it(stage: Counting) -> None:
    stage.server.watch_delay = 20.0
    stage.put("a")
    async with stage.running(CONTROLLER):
        await stage.rest(60)
        assert (stage.label(), stage.written) == ("1", 1)
        stage.put("b")
        await stage.rest(25)
        stage.put("c")  # its pods are told one after the other, and its own label not yet
        await stage.rest(60)
        assert (stage.label(), stage.written) == ("3", 3)


async def test_f43_five_thousand_pod_events_cost_few_writes(stage: Counting) -> None:
    """Ten pods come and go each tenth of a second, for 25 seconds; then some stay."""
    async with stage.running(CONTROLLER):
        for turn in range(250):
            names = [f"p-{turn}-{at}" for at in range(10)]
            stage.put(*names)
            await stage.rest(0.05)
            for name in names:
                stage.server.delete(PODS, name)
            await stage.rest(0.05)
        stage.put("a", "b", "c", "d")
        await stage.rest(10)
        assert stage.label() == "4"
        assert stage.written <= 14, "not more than one in two seconds"
        assert {attempt.verdict.outcome for attempt in stage.attempts} <= {Outcome.DONE, Outcome.WAITING}


async def test_f43_the_count_changes_while_it_is_written(stage: Counting) -> None:
    stage.put("a")
    stage.server.faults.delay(Match(verb="patch"), before=1.0, after=1.0)
    async with stage.running(CONTROLLER):
        await stage.rest(1.5)
        stage.put("b")
        await stage.rest(10)
        assert (stage.label(), stage.written) == ("2", 2)


async def test_f43_a_status_that_changes_between_read_and_patch_costs_no_second_attempt(stage: Counting) -> None:
    """Its own controller writes it with every pod."""
    stage.put("a")
    stage.server.faults.delay(Match(verb="patch"), before=1.0)
    async with stage.running(CONTROLLER):
        stage.server.change(REPLICASETS, "web", {"status": {"replicas": 1}}, subresource="status")
        await stage.rest(10)
        [attempt] = stage.attempts
        assert [call.code for call in attempt.calls] == [200]
        assert stage.label() == "1"
        assert (stage.server.get(REPLICASETS, "web") or {})["status"]["replicas"] == 1


async def test_f43_writes_of_its_own_controller_are_no_failures(stage: Counting) -> None:
    stage.put("a")
    stage.server.watch_delay = 0.5
    async with stage.running(CONTROLLER):
        for at in range(20):
            stage.server.change(REPLICASETS, "web", {"status": {"replicas": at + 1}}, subresource="status")
            stage.put(f"p-{at}")
            await stage.rest(0.2)
        await stage.rest(10)
        assert stage.label() == "21"
        assert {attempt.verdict.outcome for attempt in stage.attempts} <= {Outcome.DONE, Outcome.WAITING}
        assert {call.code for attempt in stage.attempts for call in attempt.calls} == {200}


@pytest.mark.parametrize("skew", [-3600.0, -2.0, 2.0, 3600.0])
async def test_a_server_with_another_time_does_not_keep_it_from_writing(skew: float, stage: Counting) -> None:
    stage.clock = FakeClock(start=START_OF_2026 + skew)  # of the run; the server keeps its own
    stage.put("a")
    async with stage.running(CONTROLLER):
        await stage.rest(5)
        stage.put("b")
        await stage.rest(7)
        assert stage.label() == "2"


async def test_f44_its_own_label_wakes_nobody_and_at_rest_nothing_is_written(stage: Counting) -> None:
    stage.put("a", "b")
    async with stage.running(CONTROLLER):
        await stage.rest(60)
        assert (stage.written, len(stage.attempts)) == (1, 1)
    async with stage.running(CONTROLLER):
        await stage.rest(12 * 3600)
        assert stage.written == 1


@pytest.mark.parametrize("again", [False, True])
async def test_f45_a_replicaset_that_goes_away_while_it_is_labelled_is_no_error(again: bool, stage: Counting) -> None:
    stage.put("a")
    stage.server.watch_delay = 2.0
    stage.server.faults.delay(Match(verb="patch"), before=1.0)
    async with stage.running(CONTROLLER):
        stage.server.delete(REPLICASETS, "web")
        if again:
            stage.server.create(replicaset())
        await stage.rest(60)
        assert {attempt.verdict.outcome for attempt in stage.attempts} == {Outcome.DONE}
        if again:
            assert stage.label() == "0", "nothing of the old one counts"


async def test_f45_who_edits_the_rest_of_it_again_and_again_is_not_answered(stage: Counting) -> None:
    """The Deployment controller keeps annotations and the number of replicas as it wants them."""
    stage.put("a")
    async with stage.running(CONTROLLER):
        await stage.rest(5)
        for at in range(50):
            labels = {"pod-template-hash": f"h{at}"}
            change = {
                "metadata": {"annotations": {"revision": str(at)}, "labels": labels},
                "spec": {"replicas": at},
            }
            stage.server.change(REPLICASETS, "web", change)
            await stage.rest(0.1)
        assert (stage.label(), stage.written) == ("1", 1)


async def test_the_cleanup_takes_the_label_away_and_no_more(stage: Counting) -> None:
    stage.server.change(REPLICASETS, "web", {"metadata": {"labels": {"team": "blue"}}})
    stage.server.create(replicaset("other"))
    stage.put("a")
    await stage.run(CONTROLLER, until_idle=True)
    assert (stage.label(), stage.label("other")) == ("1", "0")
    undoing = present(CONTROLLER.undoing)
    stage.server.writes.clear()
    summary = await stage.run(undoing, once=True)
    assert (summary.problem(), stage.written) == (None, 2)
    assert labels_of(present(stage.server.get(REPLICASETS, "web"))) == {"team": "blue"}
    await stage.run(undoing, once=True)
    assert stage.written == 2, "a second time there is nothing to do"
