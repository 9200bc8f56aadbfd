"""The scaler against a server in memory: what it does on time and what it leaves alone."""

from __future__ import annotations

import pytest

from kubectl_ctrl.controllers.scaler import configured
from kubectl_ctrl.controllers.scaler.annotations import DEFAULT_PREFIX
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.resources import DEPLOYMENTS, HPAS, STATEFULSETS, Resource
from tests.controllers.scaler.stage import HOUR, NIGHT, WEEKDAYS, Stage, workload
from tests.objects import autoscaler, present

KINDS = [(DEPLOYMENTS, "Deployment"), (STATEFULSETS, "StatefulSet")]


# --- the day of a workload


@pytest.mark.parametrize(("resource", "kind"), KINDS)
async def test_a_day_and_a_night(resource: Resource, kind: str, stage: Stage) -> None:
    async with stage.scaling(workload(kind=kind, **WEEKDAYS)):
        assert stage.replicas(resource=resource) == 3
        await stage.until("2026-01-05T12:30Z")
        assert stage.replicas(resource=resource) == 0
        assert stage.state(resource=resource)["original-replicas"] == "3"
        await stage.until("2026-01-05T13:00Z")
        assert stage.replicas(resource=resource) == 3
        assert "original-replicas" not in stage.state(resource=resource)
        assert stage.messages() == [
            "Scaled from 3 to 0: stop of 'main' (30 12,14 * * 1-5, UTC) at 2026-01-05T12:30:00Z.",
            "Scaled from 0 to 3: start of 'main' (0 11,13 * * 1-5, UTC) at 2026-01-05T13:00:00Z.",
        ]


async def test_it_acts_within_the_second(stage: Stage) -> None:
    async with stage.scaling(workload(stop="30 12 * * *", start="0 7 * * *")):
        await stage.rest(HOUR / 2 - 2)
        assert stage.replicas() == 3
        await stage.rest(1.5)
        assert stage.replicas() == 0


async def test_a_schedule_in_the_past_acts_at_once(stage: Stage) -> None:
    stage.goto("2026-01-10T12:00Z")  # a Saturday
    async with stage.scaling(workload(**WEEKDAYS)):
        assert stage.replicas() == 0
        assert "2026-01-09T14:30:00Z" in stage.state()["last-event"]


async def test_one_patch_of_one_version_carries_count_and_memory(stage: Stage) -> None:
    stage.goto("2026-01-10T12:00Z")
    async with stage.scaling(workload(**WEEKDAYS)):
        assert stage.written() == [("patch", "deployments", "web")]
        (write,) = [one for one in stage.writes() if one.resource == DEPLOYMENTS]
        assert write.changed
        entries = {entry["manager"]: entry for entry in stage.obj()["metadata"]["managedFields"]}
        assert entries["kubectl-ctrl-scaler"]["operation"] == "Update"


async def test_at_rest_nothing_is_written_and_nothing_is_called(stage: Stage) -> None:
    stage.goto("2026-01-10T12:00Z")
    async with stage.scaling(workload(**WEEKDAYS)):
        await stage.rest(60)
        stage.server.requests.clear()
        await stage.rest(5 * HOUR)
        assert [seen.verb for seen in stage.server.requests if seen.verb != "watch"] == []
        assert len(stage.attempts) == 1 + 5, "it looks at the clock once an hour"


async def test_workloads_without_annotations_are_not_even_looked_at(stage: Stage) -> None:
    plain = workload("plain")
    del plain["metadata"]["annotations"]
    async with stage.scaling(plain, autoscaler(target="plain")) as running:
        stage.scale(5, "plain")
        await stage.rest(HOUR)
        assert stage.attempts == []
        held = dict(running.manager.members[0].controller.held_back)
        assert held[f"has annotations under {DEFAULT_PREFIX}"] >= 1


async def test_a_restart_at_rest_writes_nothing(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        await stage.until("2026-01-05T12:30Z")
    stage.server.writes.clear()
    async with stage.scaling():
        await stage.rest(1200)
        assert stage.written() == []
        assert len(stage.messages()) == 1


async def test_a_deployment_and_a_stateful_set_of_one_name_are_both_scaled(stage: Stage) -> None:
    for resource, kind in KINDS:
        stage.server.create(workload(kind=kind, replicas=2 if resource is DEPLOYMENTS else 4, **NIGHT))
    async with stage.scaling():
        await stage.until("2026-01-05T12:30Z")
        assert [stage.replicas(resource=resource) for resource, _ in KINDS] == [0, 0]
        assert [stage.state(resource=resource)["original-replicas"] for resource, _ in KINDS] == ["2", "4"]


async def test_one_that_is_refused_does_not_hold_up_the_other_of_its_name(stage: Stage) -> None:
    from kubectl_ctrl.testing.faults import Match

    for _, kind in KINDS:
        stage.server.create(workload(kind=kind, **NIGHT))
    stage.server.faults.fail(Match(verb="patch", plural="deployments"), 403, times=1000)
    async with stage.scaling():
        assert (stage.replicas(), stage.replicas(resource=STATEFULSETS)) == (3, 0)


async def test_of_a_selection_by_labels_both_kinds_are_selected(stage: Stage) -> None:
    for _, kind in KINDS:
        chosen = workload("chosen", kind=kind, **NIGHT)
        chosen["metadata"]["labels"] = {"team": "blue"}
        stage.server.create(chosen)
        stage.server.create(workload("other", kind=kind, **NIGHT))
    async with stage.scaling(labels="team=blue"):
        await stage.until("2026-01-05T12:30Z")
        for resource, _ in KINDS:
            assert (stage.replicas("chosen", resource), stage.replicas("other", resource)) == (0, 3)


# --- settings


async def test_counts_other_than_nothing_and_the_remembered(stage: Stage) -> None:
    async with stage.scaling(workload(stop_replicas="1", start_replicas="5", **WEEKDAYS)):
        assert stage.replicas() == 5
        await stage.until("2026-01-05T12:30Z")
        assert stage.replicas() == 1
        await stage.until("2026-01-05T13:00Z")
        assert stage.replicas() == 5


async def test_several_schedules_in_a_list(stage: Stage) -> None:
    listed = """
        - {name: noon, start: "0 12,16 * * *", startReplicas: 6}
        - {name: tea, stop: 0 14 * * *, stopReplicas: 2, timeZone: Europe/Berlin}
        - {stop: 0 15 * * *}
        """
    async with stage.scaling(workload(schedules=listed)):
        counts = [stage.replicas()]
        for hour in (13, 15):
            await stage.until(f"2026-01-05T{hour}:00Z")
            counts.append(stage.replicas())
        await stage.until("2026-01-05T16:00Z")
        assert [*counts, stage.replicas()] == [6, 2, 0, 6]


async def test_a_namespaces_annotations_are_defaults_for_what_is_in_it(stage: Stage) -> None:
    stage.say_namespace(stop="30 12 * * *", start="0 7 * * *")
    for resource, kind in KINDS:
        plain = workload(f"plain-{resource.plural}", kind=kind)
        del plain["metadata"]["annotations"]
        stage.server.create(plain)
    async with stage.scaling(workload("later", stop="45 12 * * *"), workload("never", stop="")):
        await stage.until("2026-01-05T12:30Z")
        assert stage.replicas("plain-deployments") == 0
        assert stage.replicas("plain-statefulsets", STATEFULSETS) == 0
        assert (stage.replicas("later"), stage.replicas("never")) == (3, 3)
        await stage.until("2026-01-05T12:45Z")
        assert stage.replicas("later") == 0
        stage.say_namespace(stop=None, start=None)
        await stage.rest(1)
        assert stage.replicas("plain-deployments") == 3, "what is not asked for any more is given back"
        assert stage.replicas("later") == 0


async def test_a_workload_that_comes_into_a_namespace_with_defaults_is_seen(stage: Stage) -> None:
    async with stage.scaling():
        stage.say_namespace(stop="0 11 * * *")
        await stage.rest(5)
        plain = workload("plain")
        del plain["metadata"]["annotations"]
        stage.server.create(plain)
        await stage.rest(5)
        assert stage.replicas("plain") == 0


async def test_a_changed_annotation_acts_at_once_by_its_latest_event(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        assert stage.replicas() == 3
        stage.say(stop="40 11 * * *")
        await stage.rest(1)
        assert stage.replicas() == 0
        stage.say(stop="30 12 * * *")
        await stage.rest(1)
        assert stage.replicas() == 3
        stage.say(start_replicas="4")
        await stage.rest(1)
        assert stage.replicas() == 4


async def test_a_change_that_means_the_same_undoes_no_manual_scale(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        stage.scale(7)
        stage.say(start="0  11,13 * * mon-fri", stop="0 21 * * *", enforce="false")
        await stage.rest(HOUR / 2)
        assert stage.replicas() == 7


async def test_exclude_gives_back_and_pause_leaves_as_it_is(stage: Stage) -> None:
    async with stage.scaling(workload("out", **NIGHT), workload("held", **NIGHT)):
        await stage.until("2026-01-05T12:30Z")
        stage.say("out", exclude="true")
        stage.say("held", pause="true")
        await stage.rest(1)
        assert (stage.replicas("out"), stage.state("out")) == (3, {})
        assert stage.replicas("held") == 0
        stage.scale(2, "held")
        await stage.until("2026-01-05T14:30Z")
        assert (stage.replicas("out"), stage.replicas("held")) == (3, 2)
        stage.say("out", exclude=None)
        stage.say("held", pause="false")
        await stage.rest(1)
        assert (stage.replicas("out"), stage.replicas("held")) == (0, 0)


@pytest.mark.parametrize("until", ["2026-01-05T23:00:00+01:00", "2026-01-05T23:00", "2026-01-05 23:00"])
async def test_temporary_wake_up_by_exclude_until(until: str, stage: Stage) -> None:
    stage.goto("2026-01-05T21:00Z")
    async with stage.scaling(workload(time_zone="Europe/Berlin", **NIGHT)):
        assert stage.replicas() == 0
        stage.say(exclude_until=until)
        await stage.until("2026-01-05T21:59:50Z")
        assert stage.replicas() == 3
        await stage.until("2026-01-05T22:00Z")
        assert stage.replicas() == 0


async def test_force_holds_until_it_is_taken_back(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        stage.say(force_down="true")
        await stage.rest(1)
        assert stage.replicas() == 0
        await stage.until("2026-01-05T13:00Z")
        assert stage.replicas() == 0
        stage.say(force_down=None, force_up="true")
        await stage.rest(1)
        assert stage.replicas() == 3
        await stage.until("2026-01-05T14:40Z")
        assert stage.replicas() == 3
        stage.say(force_up="false")
        await stage.rest(1)
        assert stage.replicas() == 0
        assert stage.messages("ScaledUp") == ["Scaled from 0 to 3: force-up."]


async def test_a_workloads_own_force_stands_against_its_namespaces(stage: Stage) -> None:
    stage.say_namespace(force_down="true")
    async with stage.scaling(workload("all"), workload("mine", force_up="true")):
        assert (stage.replicas("all"), stage.replicas("mine")) == (0, 3)
        assert stage.state("mine")["last-event"].startswith("force/start=3/")
        assert stage.messages("BadAnnotation") == []


async def test_a_new_workload_has_its_grace_period(stage: Stage) -> None:
    async with stage.scaling(workload(stop="0 11 * * *", grace_period="15m")):
        await stage.rest(14 * 60)
        assert stage.replicas() == 3
        await stage.rest(61)
        assert stage.replicas() == 0


async def test_another_prefix_is_another_scaler(stage: Stage) -> None:
    mine = workload("mine")
    mine["metadata"]["annotations"] = {"scaler.example.com/stop": "0 11 * * *"}
    stage.server.create(mine)
    stage.server.create(workload("theirs", stop="0 11 * * *"))
    async with stage.scaling(spec=configured(annotation_prefix="scaler.example.com")):
        assert (stage.replicas("mine"), stage.replicas("theirs")) == (0, 3)
        assert "scaler.example.com/last-event" in stage.obj("mine")["metadata"]["annotations"]


@pytest.mark.parametrize("prefix", ["", "/", "Caps.example.com/", "a b/", "two/slashes/", "x" * 300])
def test_a_prefix_that_is_none_is_refused(prefix: str) -> None:
    with pytest.raises(UsageError, match="annotation prefix"):
        configured(annotation_prefix=prefix)


# --- between events


async def test_a_manual_scale_holds_until_the_next_event(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        await stage.until("2026-01-05T12:30Z")
        stage.scale(2)
        await stage.until("2026-01-05T12:59Z")
        assert stage.replicas() == 2
        await stage.until("2026-01-05T13:00Z")
        assert stage.replicas() == 3


async def test_enforce_reverts_a_manual_scale(stage: Stage) -> None:
    async with stage.scaling(workload(enforce="true", **WEEKDAYS)):
        stage.scale(5)
        await stage.rest(1)
        assert stage.replicas() == 3
        await stage.until("2026-01-05T12:30Z")
        stage.scale(1)
        await stage.rest(1)
        assert stage.replicas() == 0
        assert [text.split(":")[0] for text in stage.messages("Reverted")] == [
            "Scaled from 5 to 3",
            "Scaled from 1 to 0",
        ]
        await stage.until("2026-01-05T13:00Z")
        assert stage.replicas() == 3


async def test_enforce_leaves_a_start_alone_that_had_nothing_to_restore(stage: Stage) -> None:
    async with stage.scaling(workload(enforce="true", replicas=0, **WEEKDAYS)):
        stage.scale(2)
        await stage.rest(HOUR)
        assert stage.replicas() == 2


# --- taking it all back


async def test_cleanup_restores_what_is_still_scaled_down_and_forgets(stage: Stage) -> None:
    for name in ("down", "woken"):
        stage.server.create(workload(name, **NIGHT))
    stage.server.create(workload("up", start="0 7 * * *"))
    async with stage.scaling(workload("hpa", stop_replicas="1", **NIGHT), autoscaler(target="hpa")):
        await stage.until("2026-01-05T12:30Z")
        stage.scale(1, "woken")
        await stage.rest(5)
        assert (stage.replicas("down"), stage.bounds()) == (0, (1, 1))
    undoing = present(configured().undoing)
    summary = await stage.run(undoing, once=True)
    assert summary.problem() is None
    assert [stage.replicas(name) for name in ("down", "woken", "up")] == [3, 1, 3]
    assert [stage.state(name) for name in ("down", "woken", "up", "hpa")] == [{}] * 4
    assert (stage.bounds(), stage.state("auto", HPAS)) == ((2, 10), {})
