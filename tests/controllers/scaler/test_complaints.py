"""Each complaint that users of such scalers have about them, as a test named after its theme."""

from __future__ import annotations

import pytest

from kubectl_ctrl.model.resources import DEPLOYMENTS, STATEFULSETS
from tests.controllers.scaler.stage import HOUR, NIGHT, WEEKDAYS, Stage, workload

KINDS = [(DEPLOYMENTS, "Deployment"), (STATEFULSETS, "StatefulSet")]


# --- complaints about the peers (each theme of them once more where it is no matter of times alone)


async def test_complaint_missed_fires_are_caught_up_to_the_latest_alone(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        pass
    stage.goto("2026-01-08T21:30Z")  # three nights and days later
    stage.server.writes.clear()
    async with stage.scaling():
        assert stage.replicas() == 0
        assert stage.written() == [("patch", "deployments", "web")]
        assert len(stage.messages()) == 1


async def test_complaint_next_event_rule_the_weekend_is_down(stage: Stage) -> None:
    stage.goto("2026-01-11T22:00Z")
    async with stage.scaling(workload(start="30 6 * * 1-5", stop="10 22 * * *")):
        assert stage.replicas() == 0
        await stage.until("2026-01-11T22:11Z")
        assert stage.replicas() == 0
        await stage.until("2026-01-12T06:30Z")
        assert stage.replicas() == 3


@pytest.mark.parametrize(("start", "stop", "told"), [("0 3 * * *", "0 3 * * *", "nothing would ever be stopped")])
async def test_complaint_empty_windows_are_told_and_never_silent(
    start: str, stop: str, told: str, stage: Stage
) -> None:
    async with stage.scaling(workload(start=start, stop=stop)):
        (message,) = stage.messages("BadAnnotation")
        assert told in message
        assert stage.written() == []


async def test_complaint_timezone_is_the_schedules_own_and_not_the_machines(stage: Stage) -> None:
    stage.goto("2026-07-06T12:00Z")
    stage.server.create(workload("berlin", time_zone="Europe/Berlin", stop="0 15 * * *"))
    async with stage.scaling(workload("utc", stop="0 15 * * *")):
        stage.scale(3, "berlin")
        stage.scale(3, "utc")
        await stage.until("2026-07-06T13:00Z")
        assert (stage.replicas("berlin"), stage.replicas("utc")) == (0, 3)
        await stage.until("2026-07-06T15:00Z")
        assert stage.replicas("utc") == 0


async def test_complaint_original_replicas_survive_a_second_stop(stage: Stage) -> None:
    async with stage.scaling(workload(replicas=5, start="0 11,13 * * *", stop="30,45 12 * * *")):
        await stage.until("2026-01-05T12:30Z")
        stage.scale(1)
        await stage.until("2026-01-05T12:45Z")
        assert (stage.replicas(), stage.state()["original-replicas"]) == (0, "5")
        await stage.until("2026-01-05T13:00Z")
        assert stage.replicas() == 5


async def test_complaint_a_stop_never_scales_up(stage: Stage) -> None:
    async with stage.scaling(workload(replicas=0, stop_replicas="1", **NIGHT)):
        await stage.until("2026-01-05T12:30Z")
        assert stage.replicas() == 0
        assert "stop=0" in stage.state()["last-event"]


async def test_complaint_a_stop_above_the_count_is_done_and_not_skipped(stage: Stage) -> None:
    async with stage.scaling(workload(replicas=2, stop_replicas="4", **NIGHT)):
        await stage.until("2026-01-05T12:30Z")
        assert (stage.replicas(), "2026-01-05T12:30:00Z" in stage.state()["last-event"]) == (2, True)


async def test_complaint_a_change_during_downtime_leaves_nothing_stuck(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        await stage.until("2026-01-05T12:30Z")
        stage.scale(1)
        await stage.rest(60)
        stage.scale(0)
        await stage.until("2026-01-05T13:00Z")
        assert stage.replicas() == 3


async def test_complaint_night_deploys_run_until_the_next_stop(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        await stage.until("2026-01-05T12:35Z")
        new = {"replicas": 3, "template": {"spec": {"containers": [{"name": "c", "image": "busybox:2"}]}}}
        stage.server.change(DEPLOYMENTS, "web", {"spec": new}, manager="kubectl-client-side-apply")
        await stage.rest(HOUR / 4)
        assert stage.replicas() == 3
        await stage.until("2026-01-05T14:30Z")
        assert stage.replicas() == 0


async def test_complaint_overlap_of_up_and_down_is_up_and_said(stage: Stage) -> None:
    stage.goto("2026-01-05T06:00Z")
    async with stage.scaling(workload(start="0 7 * * *", stop="0 * * * *")):
        assert stage.replicas() == 0
        await stage.until("2026-01-05T07:00Z")
        assert stage.replicas() == 3
        (message,) = stage.messages("SameTime")
        assert "start of 'main'" in message
        assert "stop of 'main'" in message


async def test_complaint_operator_owned_sets_are_left_alone_unless_allowed(stage: Stage) -> None:
    owner = stage.server.create(workload("operator"))
    owned = workload(stop="0 11 * * *")
    owned["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "operator",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    async with stage.scaling(owned):
        await stage.rest(HOUR)
        assert stage.replicas() == 3
        (message,) = stage.messages("OwnedByController")
        assert "Deployment 'operator' owns it" in message
        stage.say(allow_owned="true")
        await stage.rest(1)
        assert stage.replicas() == 0


async def test_complaint_flapping_ends(stage: Stage) -> None:
    """Somebody sets the count whenever it is enforced: it gives way for a while, and says so once."""
    async with stage.scaling(workload(stop="0 11 * * *", enforce="true")):
        for _ in range(30):
            stage.scale(3)
            await stage.rest(5)
        assert len(stage.written()) == 6, "one stop and five reverts"
        assert len(stage.messages("Fighting")) == 1
        assert stage.replicas() == 3
        await stage.rest(600)
        assert stage.replicas() == 0


@pytest.mark.parametrize("manager", ["argocd-controller", "kustomize-controller", "helm-controller", "helm"])
async def test_complaint_gitops_owned_replicas_are_refused_with_an_event_unless_allowed(
    manager: str, stage: Stage
) -> None:
    stage.server.apply(workload(stop="0 11 * * *"), manager=manager)
    async with stage.scaling():
        await stage.rest(2 * HOUR)
        assert (stage.replicas(), stage.written()) == (3, [])
        (message,) = stage.messages("OwnedByGitOps")
        assert f"because {manager} applies spec.replicas of this workload" in message
        stage.say(allow_gitops="true")
        await stage.rest(1)
        assert stage.replicas() == 0


async def test_complaint_gitops_without_replicas_in_the_repository_is_fine(stage: Stage) -> None:
    obj = workload(stop="0 11 * * *")
    del obj["spec"]["replicas"]
    stage.server.apply(obj, manager="argocd-controller")
    stage.scale(4)
    async with stage.scaling():
        assert (stage.replicas(), stage.state()["original-replicas"]) == (0, "4")


async def test_complaint_it_never_scales_what_runs_it(stage: Stage) -> None:
    stage.say_namespace(stop="0 11 * * *")
    runner = workload("kubectl-ctrl-scaler")
    runner["metadata"]["labels"] = {
        "app.kubernetes.io/managed-by": "kubectl-ctrl",
        "app.kubernetes.io/component": "controller",
    }
    async with stage.scaling(runner):
        await stage.rest(HOUR)
        assert (stage.replicas("kubectl-ctrl-scaler"), stage.written()) == (3, [])
