"""What is wrong with annotations is told, exactly and once."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS, STATEFULSETS
from tests.controllers.scaler.stage import HOUR, WEEKDAYS, Stage, workload

KINDS = [(DEPLOYMENTS, "Deployment"), (STATEFULSETS, "StatefulSet")]


# --- what is told


async def test_nothing_to_restore_is_told(stage: Stage) -> None:
    async with stage.scaling(workload(replicas=0, **WEEKDAYS)):
        await stage.rest(1200)
        (message,) = stage.messages("NothingToRestore")
        assert "set start-replicas" in message
        assert stage.replicas() == 0


async def test_a_bad_annotation_changes_nothing_and_is_told_once(stage: Stage) -> None:
    stage.goto("2026-01-05T21:00Z")
    async with stage.scaling(workload(stop="60 * * * *", strat="0 7 * * *", stop_replicas="-1")):
        for count in (4, 5, 6):
            stage.scale(count)
            await stage.rest(HOUR)
        assert stage.written() == []
        (message,) = stage.messages()
        assert message == (
            f"Annotation strat is unknown; did you mean start? "
            f"Annotation stop has '60' in field 1 (minute), which is out of range; allowed: 0-59. "
            f"Annotation stop-replicas is '-1'; use a whole number from 0 to {2**31 - 1}. "
            f"Nothing is changed until this is corrected."
        )
        stage.say(strat=None, stop="30 12 * * *", stop_replicas=None)
        await stage.rest(1)
        assert stage.replicas() == 0
        assert all(attempt.verdict.outcome in (Outcome.DONE, Outcome.AFTER) for attempt in stage.attempts)


async def test_a_bad_annotation_of_a_namespace_is_told_once_about_the_namespace(stage: Stage) -> None:
    stage.say_namespace(stop="0 7 * *")
    for name in ("one", "two"):
        stage.server.create(workload(name, start="0 8 * * *"))
    async with stage.scaling():
        await stage.rest(HOUR)
        (message,) = stage.messages()
        assert message.startswith("Namespace annotation stop has 4 fields")
        assert stage.written() == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"force_up": "true", "force_down": "true"}, "force-up and force-down are both true; set only one of them."),
        ({"exclude": "yes"}, "exclude is 'yes'; use true or false."),
        ({"grace_period": "soon"}, "grace-period is 'soon'; write a duration like 15m, 1h30m or 2d."),
        ({"exclude_until": "tomorrow"}, "exclude-until is 'tomorrow'; write 2026-12-24T18:00:00Z"),
        ({"time_zone": "Mars/Olympus"}, "time-zone is 'Mars/Olympus', which is not a known time zone"),
        ({"schedules": "0 7 * * *"}, "schedules must be a list of 1 to 64 schedules."),
        ({"schedules": "[]"}, "schedules must be a list"),
        ({"schedules": "- {stop: * 7 * * *}"}, "schedules is neither YAML nor JSON (line 1)"),
        ({"schedules": "[" * 9000}, "schedules must be a list"),
        ({"schedules": "x" * 20000}, "schedules has 20000 characters"),
        ({"schedules": "- stop"}, "schedules[0] is 'stop'; it must be a mapping"),
        ({"schedules": "- {name: x}"}, "schedules[0] has neither start nor stop."),
        (
            {"schedules": "- {stop: 0 7 * * *, timezone: UTC}"},
            "schedules[0].timezone is unknown; did you mean timeZone?",
        ),
        ({"schedules": "- {stop: 0 7 * * *, stopReplicas: 1.5}"}, "schedules[0].stopReplicas is '1.5'; use a whole"),
        ({"schedules": "- {stop: 0 7 * * *, stopReplicas: true}"}, "schedules[0].stopReplicas is 'true'"),
        (
            {"schedules": "[{stop: 0 7 * * *, name: a}, {stop: 0 8 * * *, name: a}]"},
            "schedules[1] has the name 'a', which is already used.",
        ),
        ({"schedules": "- {stop: 0 7 * * *, name: force}"}, "has the name 'force', which is already used."),
        ({"schedules": "- {stop: 0 7 31 2 *}"}, "schedules[0].stop never fires"),
    ],
)
async def test_what_is_wrong_is_said_exactly(said: dict[str, Any], told: str, stage: Stage) -> None:
    async with stage.scaling(workload(**said)):
        (message,) = stage.messages("BadAnnotation")
        assert told in message
        assert stage.written() == []


async def test_a_garbled_memory_is_as_good_as_none(stage: Stage) -> None:
    for last in ("", "main", "main/stop=0/xyz@2026-01-05T11:00:00Z", "main/stop=0/00000000@2026-99-99T99:99:99Z"):
        obj: Obj = workload("web", stop="0 11 * * *", last_event=last, original_replicas="many")
        async with stage.scaling(obj):
            assert (stage.replicas(), stage.state()["original-replicas"]) == (0, "3")
        stage.server.delete(DEPLOYMENTS, "web")
