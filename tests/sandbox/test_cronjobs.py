from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import EVENTS, PODS
from kubectl_ctrl.sandbox.controllers.cronjobs import CronJobs
from kubectl_ctrl.sandbox.controllers.jobs import Jobs
from kubectl_ctrl.sandbox.controllers.resources import CRONJOBS, JOBS
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import owned_by
from tests.sandbox.workloads import end, messages, names, reasons, start, status_of

# Minutes since the epoch at the start of the test, 2026-01-01.
_MINUTE = 29453760


@pytest.fixture(autouse=True)
async def controlled(server: ScriptedServer) -> None:
    start(server, CronJobs, Jobs)


def make(server: ScriptedServer, **spec: Any) -> Obj:
    pod = {"restartPolicy": "Never", "containers": [{"name": "web", "image": "i"}]}
    job = {
        "backoffLimit": 0,
        "completions": 1,
        "template": {"metadata": {"labels": {"job": "one"}}, "spec": pod},
    }
    template = {"metadata": {"labels": {"made": "so"}, "annotations": {"a": "b"}}, "spec": job}
    full = {"schedule": "* * * * *", "jobTemplate": template, **spec}
    return server.create({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": full})


def status(server: ScriptedServer) -> Obj:
    return status_of(server, CRONJOBS, "tick")


def active(server: ScriptedServer) -> list[str]:
    return [one["name"] for one in status(server).get("active") or ()]


async def minutes(server: ScriptedServer, count: float = 1.0) -> None:
    await server.clock.sleep(60 * count + 0.2)
    server.settle()


def end_all(server: ScriptedServer, how: str = "Succeeded") -> None:
    end(
        server,
        *(pod["metadata"]["name"] for pod in server.objects(PODS) if pod["status"]["phase"] == "Pending"),
        how=how,
    )


def own(server: ScriptedServer) -> list[str]:
    """The reasons of the events about the CronJob."""
    about = [event for event in server.objects(EVENTS) if event["involvedObject"]["kind"] == "CronJob"]
    return [event["reason"] for event in sorted(about, key=lambda event: int(event["metadata"]["resourceVersion"]))]


async def test_a_job_starts_each_minute(server: ScriptedServer) -> None:
    made = make(server)
    assert (names(server, JOBS), status(server)) == ([], {})
    await minutes(server)
    (job,) = server.objects(JOBS)
    assert job["metadata"]["name"] == f"tick-{_MINUTE + 1}"
    assert job["metadata"]["labels"] == {"made": "so"}
    assert job["metadata"]["annotations"] == {
        "a": "b",
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:01:00Z",
    }
    assert job["metadata"]["ownerReferences"] == [owned_by(made)]
    assert active(server) == [f"tick-{_MINUTE + 1}"]
    assert status(server)["lastScheduleTime"] == "2026-01-01T00:01:00Z"
    await minutes(server)
    assert active(server) == [f"tick-{_MINUTE + 1}", f"tick-{_MINUTE + 2}"]


async def test_a_job_that_ends_is_not_active(server: ScriptedServer) -> None:
    make(server)
    await minutes(server)
    end_all(server)
    assert active(server) == []
    assert status(server)["lastSuccessfulTime"] == "2026-01-01T00:01:00Z"
    assert own(server) == ["SuccessfulCreate", "SawCompletedJob"]
    assert f"Saw completed job: tick-{_MINUTE + 1}, condition: Complete" in messages(server)


@pytest.mark.parametrize(
    ("policy", "left", "event"),
    [("Forbid", [1], "JobAlreadyActive"), ("Replace", [2], "SuccessfulDelete"), ("Allow", [1, 2], "SuccessfulCreate")],
)
async def test_a_job_that_still_runs(policy: str, left: list[int], event: str, server: ScriptedServer) -> None:
    make(server, concurrencyPolicy=policy)
    await minutes(server)
    await minutes(server)
    assert names(server, JOBS) == [f"tick-{_MINUTE + number}" for number in left] == active(server)
    assert event in own(server)[1:]


async def test_a_suspended_one_starts_nothing_and_later_only_the_last_missed_one(server: ScriptedServer) -> None:
    make(server, suspend=True)
    await minutes(server, 5)
    assert names(server, JOBS) == []
    server.change(CRONJOBS, "tick", {"spec": {"suspend": False}})
    assert names(server, JOBS) == [f"tick-{_MINUTE + 5}"]


async def test_a_late_start_is_missed(server: ScriptedServer) -> None:
    make(server, schedule="0 * * * *", suspend=True, startingDeadlineSeconds=100)
    await minutes(server, 63)
    server.change(CRONJOBS, "tick", {"spec": {"suspend": False}})
    assert names(server, JOBS) == []


async def test_too_many_missed_times_are_reported(server: ScriptedServer) -> None:
    make(server, suspend=True)
    await minutes(server, 200)
    server.change(CRONJOBS, "tick", {"spec": {"suspend": False}})
    assert own(server) == ["TooManyMissedTimes", "SuccessfulCreate"]


async def test_the_time_zone_counts(server: ScriptedServer) -> None:
    make(server, schedule="30 1 * * *", timeZone="Europe/Berlin")
    await minutes(server, 31)
    (job,) = server.objects(JOBS)
    planned = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert (job["metadata"]["name"], planned) == (f"tick-{_MINUTE + 30}", "2026-01-01T01:30:00+01:00")


async def test_a_schedule_that_never_comes_is_reported(server: ScriptedServer) -> None:
    make(server, schedule="0 0 31 2 *")
    assert reasons(server) == ["InvalidSchedule"]
    assert messages(server)[0].startswith("invalid schedule: 0 0 31 2 * : time difference between two")


async def test_only_a_few_finished_jobs_stay(server: ScriptedServer) -> None:
    make(server, successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for how in ("Succeeded", "Failed", "Succeeded", "Failed", "Succeeded"):
        await minutes(server)
        end_all(server, how)
    assert names(server, JOBS) == [f"tick-{_MINUTE + number}" for number in (3, 4, 5)]


async def test_a_job_that_somebody_deleted_is_missing(server: ScriptedServer) -> None:
    make(server)
    await minutes(server)
    server.delete(JOBS, f"tick-{_MINUTE + 1}", propagation="Background")
    assert (active(server), own(server)[-1]) == ([], "MissingJob")
    assert names(server, JOBS) == []
    assert present(server.get(CRONJOBS, "tick"))["status"]["lastScheduleTime"]


async def test_its_jobs_go_with_it(server: ScriptedServer) -> None:
    make(server)
    await minutes(server)
    server.delete(CRONJOBS, "tick", propagation="Background")
    assert (names(server, JOBS), names(server)) == ([], [])
