"""The faults and inputs of docs/faults.md that concern the scaler; M18's cron texts are in test_schedule."""

from __future__ import annotations

import pytest

from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.resources import DEPLOYMENTS, EVENTS, HPAS, STATEFULSETS
from kubectl_ctrl.testing.faults import Match
from tests.controllers.scaler.stage import HOUR, NIGHT, WEEKDAYS, Stage, workload
from tests.objects import autoscaler

PATCH = Match(verb="patch", plural="deployments")


# --- what happens to the cluster and to the machine


async def test_f10_a_workload_that_goes_between_look_and_write_ends_quietly(stage: Stage) -> None:
    stage.goto("2026-01-10T12:00Z")
    stage.server.create(workload(**WEEKDAYS))
    stage.server.create(autoscaler())
    stage.server.faults.delay(PATCH, before=5)
    async with stage.scaling():
        stage.server.delete(DEPLOYMENTS, "web")
        await stage.rest(HOUR)
        assert {attempt.verdict.outcome for attempt in stage.attempts} <= {Outcome.DONE, Outcome.AFTER}
        assert (stage.server.objects(DEPLOYMENTS), stage.messages()) == ([], [])


async def test_f30_a_refusal_is_told_in_the_servers_words_retried_slowly_and_forgotten_once_lifted(
    stage: Stage,
) -> None:
    stage.server.create(workload(**NIGHT))
    stage.server.faults.fail(PATCH, 403, reason="Forbidden", message="no scaling on Mondays", times=5)
    async with stage.scaling():
        await stage.rest(70)
        (message,) = stage.messages("ScaleFailed")
        assert message.startswith("The API server rejected the change: ")
        assert "no scaling on Mondays" in message
        tries = [seen for seen in stage.server.requests if seen.verb == "patch" and "deployments" in seen.path]
        assert 2 <= len(tries) <= 4
        await stage.rest(600)
        assert "last-event" in stage.state()
        assert len(stage.messages("ScaleFailed")) == 1


@pytest.mark.parametrize("code", [403, 422])
@pytest.mark.parametrize("refused", ["deployments", "statefulsets"])
async def test_f30_a_refused_event_costs_neither_workload_its_next_events(
    code: int, refused: str, stage: Stage
) -> None:
    """A ValidatingAdmissionPolicy answers 422 by default, an admission plugin 403."""
    for kind in ("Deployment", "StatefulSet"):
        stage.server.create(workload(kind=kind, start="0,30 * * * *", stop="15,45 * * * *"))
    async with stage.scaling():
        stage.server.faults.fail(
            Match(verb="patch", plural=refused), code, reason="Invalid" if code == 422 else "Forbidden", times=1000
        )
        other = STATEFULSETS if refused == "deployments" else DEPLOYMENTS
        for minute, count in ((15, 0), (30, 3), (45, 0)):
            await stage.until(f"2026-01-05T12:{minute}Z")
            assert stage.replicas(resource=other) == count
        stage.server.faults.clear()
        await stage.until("2026-01-05T13:15Z")
        assert [stage.replicas(resource=one) for one in (DEPLOYMENTS, STATEFULSETS)] == [0, 0]
        refusals = [one for one in stage.attempts if one.verdict.failed]
        assert refusals
        assert {one.verdict.outcome for one in refusals} == {Outcome.TERMINAL if code == 422 else Outcome.RETRY}


@pytest.mark.parametrize("code", [403, 422])
async def test_f30_a_mistake_in_one_hour_is_made_good_at_the_next_event(code: int, stage: Stage) -> None:
    async with stage.scaling(workload(stop="15 * * * *", start="30 * * * *")):
        await stage.until("2026-01-05T12:14Z")
        stage.server.faults.fail(
            PATCH, code, reason="Invalid" if code == 422 else "Forbidden", message="denied by policy", times=1
        )
        await stage.until("2026-01-05T12:15Z")
        assert stage.replicas() == 3
        assert "denied by policy" in stage.messages("ScaleFailed")[0]
        await stage.until("2026-01-05T13:15Z")
        assert stage.replicas() == 0
        await stage.until("2026-01-05T13:30Z")
        assert stage.replicas() == 3


async def test_f38_a_suspended_laptop_converges_when_it_wakes(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        stage.clock.suspend(3 * HOUR)  # over a stop, a start and a stop
        await stage.rest(10)
        assert stage.replicas() == 0
        assert len(stage.messages()) == 1


async def test_f38_a_clock_that_is_set_forward_is_noticed_within_the_hour(stage: Stage) -> None:
    stage.goto("2026-01-05T16:00Z")
    async with stage.scaling(workload(**WEEKDAYS)):
        assert stage.replicas() == 0
        stage.clock.step(19.1 * HOUR)
        await stage.rest(HOUR + 5)
        assert stage.replicas() == 3


async def test_f38_a_clock_that_is_set_back_a_little_acts_on_nothing_twice(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        await stage.until("2026-01-05T12:30Z")
        stage.clock.step(-600)
        writes = len(stage.written())
        stage.say(grace_period="0s")  # any look
        await stage.rest(1300)
        assert (stage.replicas(), len(stage.written())) == (0, writes)
        await stage.until("2026-01-05T13:00Z")
        assert stage.replicas() == 3


async def test_f38_what_a_clock_that_was_far_ahead_did_is_not_waited_for(stage: Stage) -> None:
    stage.goto("2027-01-09T12:00Z")
    async with stage.scaling(workload(**WEEKDAYS)):
        assert stage.replicas() == 0
        stage.goto("2026-01-05T12:00Z")
        await stage.rest(HOUR)
        await stage.until("2026-01-05T13:30Z")
        assert stage.replicas() == 3


async def test_f13_what_the_cache_has_not_seen_yet_counts(stage: Stage) -> None:
    """At the moment of the stop the server has it put off already; the watch is late."""
    stage.goto("2026-01-05T12:29Z")
    stage.server.create(workload(**WEEKDAYS))
    stage.server.watch_delay = 40
    async with stage.scaling():
        await stage.rest(49)
        assert "start=3" in stage.state()["last-event"]
        stage.say(stop="0 23 * * *")
        await stage.until("2026-01-05T12:30Z")
        assert stage.replicas() == 3
        await stage.rest(300)
        assert (stage.replicas(), stage.messages()) == (3, [])


@pytest.mark.parametrize("lost", [True, False])
async def test_f39_a_crash_at_the_event_is_caught_up_once(lost: bool, stage: Stage) -> None:
    """The process goes in the middle of the write, whether it took effect or not."""
    stage.goto("2026-01-05T12:29:50Z")
    async with stage.scaling(workload(**WEEKDAYS)):
        stage.server.faults.hang(PATCH, after_commit=lost)
        await stage.until("2026-01-05T12:30Z")
    stage.server.faults.clear()
    async with stage.scaling():
        await stage.rest(60)
        assert (stage.replicas(), stage.state()["original-replicas"]) == (0, "3")
    stops = [one for one in stage.writes() if one.resource == DEPLOYMENTS and one.changed]
    assert len(stops) == 2, "the first look and the stop"


async def test_f39_of_all_that_was_missed_the_latest_alone_is_done(stage: Stage) -> None:
    async with stage.scaling(workload(stop="* * * * *", stop_replicas="1", start="0 6 * * *")):
        pass
    stage.server.writes.clear()
    stage.clock.step(1000 * 60)
    async with stage.scaling():
        assert stage.written() == [("patch", "deployments", "web")]


async def test_f41_two_schedules_at_one_minute_have_one_winner_and_both_are_told(stage: Stage) -> None:
    listed = "[{name: b, stop: 30 12 * * *, stopReplicas: 1}, {name: a, stop: 30 12 * * *, stopReplicas: 2}]"
    async with stage.scaling(workload(schedules=listed)):
        stage.scale(5)
        await stage.until("2026-01-05T12:30Z")
        assert stage.replicas() == 1
        (message,) = [text for text in stage.messages("SameTime") if "2026-01-05T12:30" in text]
        assert "stop of 'b'" in message
        assert "stop of 'a'" in message
        writes = len(stage.written())
        await stage.rest(HOUR)
        assert len(stage.written()) == writes


async def test_f41_a_manual_scale_between_events_is_nobodys_fight(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS)):
        writes = len(stage.written())
        for count in (1, 9, 0, 4):
            stage.scale(count)
            await stage.rest(60)
            assert stage.replicas() == count
        assert len(stage.written()) == writes


async def test_f42_absent_made_again_and_paused_targets(stage: Stage) -> None:
    stage.server.create(autoscaler())  # of nothing
    async with stage.scaling():
        first = workload(**WEEKDAYS)
        first["spec"]["paused"] = True
        stage.server.create(first)
        await stage.until("2026-01-05T12:30Z")
        assert stage.replicas() == 0, "a paused rollout is scaled all the same"
        stage.server.delete(DEPLOYMENTS, "web")
        await stage.rest(60)
        stage.server.create(workload(replicas=7, **WEEKDAYS))
        await stage.rest(5)
        assert (stage.replicas(), stage.state()["original-replicas"]) == (0, "7")
        assert all(attempt.verdict.outcome in (Outcome.DONE, Outcome.AFTER) for attempt in stage.attempts)


async def test_f55_an_edit_during_the_reconcile_wins(stage: Stage) -> None:
    stage.goto("2026-01-05T12:40Z")
    stage.server.create(workload(stop="30 12 * * *"))
    stage.server.faults.delay(PATCH, before=5)
    async with stage.scaling():
        stage.say(stop="0 23 * * *", start="0 6 * * *")
        await stage.rest(60)
        assert stage.replicas() == 3, "what was decided on the old annotations is not done"
        assert "start=3" in stage.state()["last-event"]


# --- what comes in


@pytest.mark.parametrize("name", ["strat", "Start", "start_replicas", "startReplicas", "stop-replica"])
async def test_m13_an_annotation_that_is_none_is_named(name: str, stage: Stage) -> None:
    obj = workload(**WEEKDAYS)
    obj["metadata"]["annotations"][f"ars.44smkn.github.io/{name}"] = "1"
    async with stage.scaling(obj):
        (message,) = stage.messages("BadAnnotation")
        assert f"Annotation {name} is unknown" in message
        assert stage.written() == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("0 7 * *", "stop has 4 fields"),
        ("0 0 7 * * *", "stop has 6 fields"),
        ("60 * * * *", "stop has '60' in field 1 (minute), which is out of range; allowed: 0-59."),
        ("* * 31 2 *", "stop never fires"),
        ("@evry", "stop is '@evry'"),
        ("CRON_TZ=UTC 0 7 * * *", "stop begins with a time zone; set it with the time-zone annotation"),
    ],
)
async def test_m18_a_cron_text_that_is_none_is_a_warning_and_changes_nothing(
    text: str, told: str, stage: Stage
) -> None:
    async with stage.scaling(workload(stop=text)):
        await stage.rest(2 * HOUR)
        (message,) = stage.messages("BadAnnotation")
        assert f"Annotation {told}" in message
        assert (stage.replicas(), stage.written()) == (3, [])


async def test_m19_fewer_at_the_start_than_at_the_stop_has_both_values_and_the_rule(stage: Stage) -> None:
    async with stage.scaling(workload(start_replicas="2", stop_replicas="5", **WEEKDAYS)):
        (message,) = stage.messages("BadAnnotation")
        assert "starts with 2 and stops with 5 replicas; a start cannot have fewer than a stop." in message
        assert stage.written() == []


async def test_m19_an_autoscaler_of_something_else_is_not_mistaken_for_the_workloads(stage: Stage) -> None:
    stage.server.create(workload(stop="0 11 * * *", stop_replicas="1"))
    for change in ({"kind": "StatefulSet"}, {"name": "other"}, {"apiVersion": "example.com/v1"}):
        hpa = autoscaler()
        hpa["metadata"]["name"] = f"auto-{next(iter(change)).lower()}"
        hpa["spec"]["scaleTargetRef"] |= change
        stage.server.create(hpa)
    async with stage.scaling():
        assert stage.replicas() == 1
        assert [one for one in stage.written() if one[1] != "deployments"] == []


@pytest.mark.parametrize(
    "text", ["$(reboot)", "-1; rm -rf /", "\x1b[2J\x1b[31m", "a\nb: c", "\u202e7 0", "<b>", "x" * 5000]
)
async def test_m37_what_is_no_cron_stays_data_and_is_escaped(text: str, stage: Stage) -> None:
    async with stage.scaling(workload(stop=text, time_zone=text, schedules=f"- {{stop: '{text}'}}")):
        (event,) = [one for one in stage.server.objects(EVENTS) if one["reason"] == "BadAnnotation"]
        assert event["message"].isascii()
        assert event["message"].isprintable()
        assert len(event["message"].encode()) <= 1024


# --- autoscalers


def follow(stage: Stage) -> None:
    """What the autoscaler's own controller does: keep the count within the bounds unless it is 0."""
    now, (least, most) = stage.replicas(), stage.bounds()
    if now and not least <= now <= most:
        stage.server.change(
            DEPLOYMENTS, "web", {"spec": {"replicas": max(least, min(now, most))}}, manager="kube-controller-manager"
        )


async def test_f32_a_stop_at_nothing_switches_the_autoscaler_off_and_a_start_wakes_it_within_its_bounds(
    stage: Stage,
) -> None:
    async with stage.scaling(workload(replicas=12, **WEEKDAYS), autoscaler()):
        await stage.until("2026-01-05T12:30Z")
        assert (stage.replicas(), stage.bounds()) == (0, (2, 10))
        await stage.until("2026-01-05T13:00Z")
        assert (stage.replicas(), stage.bounds(), stage.state("auto", HPAS)) == (10, (2, 10), {})


async def test_f32_counts_above_nothing_are_bounds_and_the_old_ones_are_remembered(stage: Stage) -> None:
    stage.server.create(workload(replicas=6, stop_replicas="1", start_replicas="4", **WEEKDAYS))
    async with stage.scaling(autoscaler()):
        assert (stage.bounds(), stage.replicas()) == ((4, 10), 6)
        assert stage.state("auto", HPAS) == {"original-min-replicas": "2", "original-max-replicas": "10"}
        await stage.until("2026-01-05T12:30Z")
        assert stage.bounds() == (1, 1)
        assert stage.state("auto", HPAS) == {"original-min-replicas": "2", "original-max-replicas": "10"}
        follow(stage)
        assert stage.replicas() == 1
        await stage.until("2026-01-05T13:00Z")
        assert stage.bounds() == (4, 10)
        follow(stage)
        writes = len(stage.written())
        stage.server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 8}}, manager="kube-controller-manager")
        await stage.rest(HOUR)
        assert (stage.replicas(), len(stage.written())) == (8, writes), "the autoscaler decides in between"


async def test_f32_a_start_without_a_count_gives_the_bounds_back(stage: Stage) -> None:
    async with stage.scaling(workload(replicas=6, stop_replicas="1", **WEEKDAYS), autoscaler()):
        await stage.until("2026-01-05T12:30Z")
        assert stage.bounds() == (1, 1)
        await stage.until("2026-01-05T13:00Z")
        assert (stage.bounds(), stage.state("auto", HPAS)) == ((2, 10), {})


async def test_f32_bounds_follow_from_the_first_and_not_from_each_other(stage: Stage) -> None:
    listed = "[{stop: 30 12 * * *, stopReplicas: 1}, {stop: 45 12 * * *, stopReplicas: 3}]"
    async with stage.scaling(workload(replicas=6, schedules=listed), autoscaler()):
        await stage.until("2026-01-05T12:30Z")
        assert stage.bounds() == (1, 1)
        await stage.until("2026-01-05T12:45Z")
        assert stage.bounds() == (2, 3)


async def test_f32_enforce_does_not_pull_against_an_autoscaler(stage: Stage) -> None:
    async with stage.scaling(workload(enforce="true", start_replicas="2", **WEEKDAYS), autoscaler()):
        for count in (4, 7, 5):
            stage.server.change(DEPLOYMENTS, "web", {"spec": {"replicas": count}}, manager="kube-controller-manager")
            await stage.rest(60)
            assert stage.replicas() == count
        await stage.until("2026-01-05T12:30Z")
        stage.scale(3)
        await stage.rest(1)
        assert stage.replicas() == 0


async def test_f32_bounds_that_gitops_applies_are_refused(stage: Stage) -> None:
    stage.server.create(workload(stop="0 11 * * *", stop_replicas="1"))
    stage.server.apply(autoscaler(), manager="argocd-controller")
    async with stage.scaling():
        await stage.rest(HOUR)
        assert stage.bounds() == (2, 10)
        (message,) = stage.messages("OwnedByGitOps")
        assert "of this autoscaler" in message


async def test_an_autoscalers_status_wakes_nobody(stage: Stage) -> None:
    async with stage.scaling(workload(**WEEKDAYS), autoscaler()):
        before = len(stage.attempts)
        for count in range(1, 5):
            status = {"currentReplicas": count, "desiredReplicas": count}
            stage.server.change(HPAS, "auto", {"status": status}, subresource="status")
        await stage.rest(60)
        assert len(stage.attempts) == before
