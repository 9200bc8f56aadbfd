from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.controllers.expiry import JobExpiry
from kubectl_ctrl.sandbox.controllers.jobs import Jobs
from kubectl_ctrl.sandbox.controllers.resources import JOBS
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.workloads import conditions, counts, end, make_ready, messages, names, reasons, start, status_of

_INDEX = "batch.kubernetes.io/job-completion-index"
_TRACKED = "batch.kubernetes.io/job-tracking"


@pytest.fixture(autouse=True)
async def controlled(server: ScriptedServer) -> None:
    start(server, Jobs, JobExpiry)


def make(server: ScriptedServer, **spec: Any) -> None:
    full = {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "template": {
            "metadata": {"labels": {"job": "one"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "web", "image": "i"}]},
        },
        **spec,
    }
    kept = {key: value for key, value in full.items() if value is not None}
    server.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, "spec": kept})


def status(server: ScriptedServer) -> Obj:
    return status_of(server, JOBS, "one")


def running(server: ScriptedServer) -> list[str]:
    """The pods that have not ended, in the order of their index."""
    pods = [pod for pod in server.objects(PODS) if pod["status"]["phase"] in ("Pending", "Running")]
    pods = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return [pod["metadata"]["name"] for pod in sorted(pods, key=index)]


def index(pod: Obj) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(_INDEX, -1))


async def later(server: ScriptedServer, seconds: float) -> None:
    await server.clock.sleep(seconds)
    server.settle()


async def test_a_job_is_complete_after_enough_successes(server: ScriptedServer) -> None:
    make(server, completions=3, parallelism=2)
    first, second = running(server)
    assert status(server) == {
        "startTime": "2026-01-01T00:00:00Z",
        "active": 2,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    pod = present(server.get(PODS, first))
    assert (pod["metadata"]["generateName"], pod["metadata"]["finalizers"]) == ("one-", [_TRACKED])
    make_ready(server, first)
    assert status(server)["ready"] == 1
    end(server, first, second)
    assert counts(status(server)) == {"active": 1, "succeeded": 2, "ready": 0, "terminating": 0}
    assert not present(server.get(PODS, first))["metadata"].get("finalizers")
    await later(server, 7)
    end(server, *running(server))
    assert conditions(status(server)) == [
        ("SuccessCriteriaMet", "CompletionsReached"),
        ("Complete", "CompletionsReached"),
    ]
    assert status(server)["completionTime"] == "2026-01-01T00:00:07Z"
    assert counts(status(server)) == {"succeeded": 3, "ready": 0, "terminating": 0}
    assert reasons(server) == ["SuccessfulCreate"] * 3 + ["Completed"]


async def test_without_completions_one_success_is_enough(server: ScriptedServer) -> None:
    make(server, completions=None, parallelism=2)
    first, second = running(server)
    end(server, first)
    assert running(server) == [second]
    assert conditions(status(server)) == []
    end(server, second)
    assert conditions(status(server))[-1] == ("Complete", "CompletionsReached")


async def test_clients_see_a_pod_listed_before_it_is_counted(server: ScriptedServer) -> None:
    make(server, completions=2, parallelism=2)
    seen: list[Any] = []
    server.storage.listeners.append(
        lambda table, step: seen.append(step.obj["status"]) if table == JOBS.full_name else None
    )
    first = running(server)[0]
    uid = present(server.get(PODS, first))["metadata"]["uid"]
    end(server, first)
    assert [(one["uncountedTerminatedPods"], one.get("succeeded", 0)) for one in seen] == [
        ({"succeeded": [uid]}, 0),
        ({}, 1),
    ]


async def test_failures_are_retried_with_a_growing_delay_and_then_the_job_fails(server: ScriptedServer) -> None:
    make(server, backoffLimit=2)
    for delay in (10, 20):
        end(server, *running(server), how="Failed", code=1)
        assert running(server) == []
        await later(server, delay - 1)
        assert running(server) == []
        await later(server, 1.1)
        assert len(running(server)) == 1
    end(server, *running(server), how="Failed", code=1)
    assert conditions(status(server)) == [
        ("FailureTarget", "BackoffLimitExceeded"),
        ("Failed", "BackoffLimitExceeded"),
    ]
    assert (status(server)["failed"], messages(server)[-1]) == (3, "Job has reached the specified backoff limit")
    assert "completionTime" not in status(server)


async def test_a_failed_job_stops_its_other_pods(server: ScriptedServer) -> None:
    make(server, backoffLimit=0, parallelism=2, completions=2)
    end(server, running(server)[0], how="Failed")
    assert len(names(server)) == 1
    assert counts(status(server)) == {"failed": 2, "ready": 0, "terminating": 0}


async def test_a_job_fails_after_its_deadline(server: ScriptedServer) -> None:
    make(server, activeDeadlineSeconds=30)
    await later(server, 29)
    assert conditions(status(server)) == []
    await later(server, 1.1)
    assert conditions(status(server))[-1] == ("Failed", "DeadlineExceeded")
    assert names(server) == []


async def test_the_containers_of_a_pod_may_restart_only_so_often(server: ScriptedServer) -> None:
    spec = {"restartPolicy": "OnFailure", "containers": [{"name": "web", "image": "i"}]}
    make(server, backoffLimit=2, template={"metadata": {"labels": {"job": "one"}}, "spec": spec})
    name = running(server)[0]
    for restarts in (1, 2):
        assert conditions(status(server)) == []
        change = {"phase": "Running", "containerStatuses": [{"name": "web", "restartCount": restarts}]}
        server.change(PODS, name, {"status": change}, subresource="status")
    assert conditions(status(server))[-1] == ("Failed", "BackoffLimitExceeded")


async def test_each_index_has_to_succeed_once(server: ScriptedServer) -> None:
    make(server, completionMode="Indexed", completions=5, parallelism=5)
    pods = running(server)
    pod = present(server.get(PODS, pods[2]))
    assert pod["metadata"]["generateName"] == "one-2-"
    assert (pod["metadata"]["annotations"][_INDEX], pod["metadata"]["labels"][_INDEX]) == ("2", "2")
    assert (pod["spec"]["hostname"], pod["spec"]["containers"][0]["env"][0]["name"]) == (
        "one-2",
        "JOB_COMPLETION_INDEX",
    )
    end(server, pods[0], pods[2], pods[3], pods[4])
    assert (status(server)["completedIndexes"], status(server)["succeeded"]) == ("0,2-4", 4)
    end(server, pods[1], how="Failed")
    await later(server, 10.1)
    (again,) = running(server)
    assert index(present(server.get(PODS, again))) == 1
    end(server, again)
    assert status(server)["completedIndexes"] == "0-4"
    assert conditions(status(server))[-1] == ("Complete", "CompletionsReached")


async def test_an_index_may_fail_only_so_often(server: ScriptedServer) -> None:
    make(server, completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1, backoffLimit=None)
    first, second = running(server)
    end(server, second)
    end(server, first, how="Failed")
    assert present(server.get(PODS, first))["metadata"]["finalizers"] == [_TRACKED]
    await later(server, 10.1)
    (again,) = running(server)
    notes = present(server.get(PODS, again))["metadata"]["annotations"]
    assert notes["batch.kubernetes.io/job-index-failure-count"] == "1"
    end(server, again, how="Failed")
    assert status(server)["failedIndexes"] == "0"
    assert conditions(status(server))[-1] == ("Failed", "FailedIndexes")


async def test_a_suspended_job_has_no_pods(server: ScriptedServer) -> None:
    make(server, suspend=True)
    assert (names(server), conditions(status(server))) == ([], [("Suspended", "JobSuspended")])
    assert "startTime" not in status(server)
    await later(server, 60)
    server.change(JOBS, "one", {"spec": {"suspend": False}})
    assert (len(running(server)), status(server)["startTime"]) == (1, "2026-01-01T00:01:00Z")
    server.change(JOBS, "one", {"spec": {"suspend": True}})
    assert (running(server), "startTime" in status(server)) == ([], False)
    assert counts(status(server)) == {"ready": 0, "terminating": 0}
    assert [reason for reason in reasons(server) if "Successful" not in reason] == ["Suspended", "Resumed", "Suspended"]


async def test_fewer_parallel_pods_leave_the_ready_ones(server: ScriptedServer) -> None:
    make(server, parallelism=3, completions=3)
    ready = running(server)[1]
    make_ready(server, ready)
    server.change(JOBS, "one", {"spec": {"parallelism": 1}})
    assert running(server) == [ready]


@pytest.mark.parametrize(
    ("action", "expected", "failed"),
    [("FailJob", ("Failed", "PodFailurePolicy"), 1), ("Ignore", None, 0), ("Count", None, 1)],
)
async def test_a_rule_about_exit_codes(
    action: str, expected: tuple[str, str] | None, failed: int, server: ScriptedServer
) -> None:
    rule = {"action": action, "onExitCodes": {"operator": "In", "values": [42]}}
    make(server, podFailurePolicy={"rules": [rule]})
    (name,) = running(server)
    end(server, name, how="Failed", code=42)
    assert status(server).get("failed", 0) == failed
    found = conditions(status(server))
    assert (found[-1] if found else None) == expected
    if expected:
        words = f"Container web for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
        assert status(server)["conditions"][-1]["message"] == words


async def test_a_pod_that_is_being_deleted_is_replaced_at_once_or_once_it_has_failed(server: ScriptedServer) -> None:
    make(server, podReplacementPolicy="Failed")
    (name,) = running(server)
    server.change(PODS, name, {"metadata": {"finalizers": [_TRACKED, "x.example.com/hold"]}})
    server.delete(PODS, name)
    assert (running(server), status(server)["terminating"]) == ([], 1)
    end(server, name, how="Failed")
    await later(server, 10.1)
    assert len(running(server)) == 1


async def test_a_success_policy_ends_the_job_early(server: ScriptedServer) -> None:
    policy = {"rules": [{"succeededIndexes": "0,2", "succeededCount": 1}]}
    make(server, completionMode="Indexed", completions=3, parallelism=3, successPolicy=policy)
    pods = running(server)
    end(server, pods[1])
    assert conditions(status(server)) == []
    end(server, pods[2])
    assert conditions(status(server)) == [("SuccessCriteriaMet", "SuccessPolicy"), ("Complete", "SuccessPolicy")]
    assert status(server)["conditions"][0]["message"] == "Matched rules at index 0"
    assert counts(status(server)) == {"succeeded": 2, "ready": 0, "terminating": 0}


async def test_pods_go_with_their_job(server: ScriptedServer) -> None:
    make(server, parallelism=2, completions=2)
    server.delete(JOBS, "one", propagation="Background")
    assert (names(server), names(server, JOBS)) == ([], [])


async def test_orphans_are_not_tracked(server: ScriptedServer) -> None:
    make(server)
    server.delete(JOBS, "one", propagation="Orphan")
    (pod,) = server.objects(PODS)
    assert not pod["metadata"].get("finalizers")


async def test_another_controller_may_manage_a_job(server: ScriptedServer) -> None:
    make(server, managedBy="example.com/other")
    assert (names(server), status(server)) == ([], {})


async def test_a_finished_job_goes_after_its_time_to_live(server: ScriptedServer) -> None:
    make(server, ttlSecondsAfterFinished=60)
    end(server, *running(server))
    await later(server, 59)
    assert names(server, JOBS) == ["one"]
    await later(server, 1.1)
    assert (names(server, JOBS), names(server)) == ([], [])
