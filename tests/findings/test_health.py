from __future__ import annotations

from typing import Any

from kubectl_ctrl.findings.account import Inactivity, Qualifier, RunHealth
from kubectl_ctrl.findings.health import HealthInput, health
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.model.resources import CONFIGMAPS, DEPLOYMENTS
from kubectl_ctrl.value import replace
from tests.findings.made import WEB, attempt, body, case, moment, retry, step, why, wish, wrote
from tests.history.made import FOO, FOOS, NOON, RUN


def of(*attempts: RecordedAttempt, qualifier: Qualifier | None = None) -> RunHealth:
    shown = case(moment=moment(60), life=Life.RUNNING if qualifier is None else Life.GONE)
    counted = {FOOS, DEPLOYMENTS}
    return health(
        HealthInput(controller=FOO, run=RUN, case=shown, attempts=attempts, qualifier=qualifier, counted=counted)
    )


def test_the_numbers_of_a_run() -> None:
    told = of(
        attempt(1, took=0.01, calls=(wrote("1.1", at=1),)),
        attempt(2, took=0.02),
        attempt(3, retry(2, at=3), took=0.5, waited=0.2, outcome=Outcome.RETRY, message="no"),
    )
    assert (told.attempts, told.objects, told.failures, told.retries, told.noops) == (3, 1, 1, 1, 1)
    assert (told.took[0], told.took[2]) == (0.02, 0.5)
    assert told.slowest is not None
    assert told.slowest.number == 3
    assert (told.began, told.until) == (NOON, NOON + 60)


def test_a_run_without_attempts() -> None:
    told = of()
    assert (told.attempts, told.took, told.slowest, told.failing) == (0, (0.0, 0.0, 0.0), None, ())


def test_objects_with_the_same_error_are_one_group_without_recovered_ones() -> None:
    def broken(number: int, name: str, **said: object) -> RecordedAttempt:
        message = f'deployments.apps "{name}" is forbidden.'
        return attempt(number, outcome=Outcome.RETRY, message=message, request=Key("default", name))

    told = of(broken(1, "a"), broken(2, "b"), broken(3, "c"), attempt(4, request=Key("default", "c")))
    [failing] = told.failing
    assert failing.count == 2
    assert failing.error == 'deployments.apps "NAME" is forbidden.'
    assert failing.objects == (Key("default", "a"), Key("default", "b"))
    assert told.tries[0].command.startswith("kubectl ctrl explain foo/a")


def test_a_failure_lasts_since_the_first_of_consecutive_failures() -> None:
    healed = (attempt(1, outcome=Outcome.RETRY), attempt(2))
    again = (attempt(3, outcome=Outcome.RETRY), attempt(9, outcome=Outcome.RETRY))
    [failing] = of(*healed, *again).failing
    assert failing.since == NOON + 3


def unready(number: int, name: str, **said: Any) -> RecordedAttempt:
    """A successful attempt that wrote Ready=False."""
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "ErrResourceExists", "message": "Taken."}]}
    wished = replace(wish("status", status, resource=FOOS), key=Key("default", name))
    return attempt(number, request=Key("default", name), wishes=(wished,), **said)


def test_an_unready_object_is_listed_although_its_attempt_succeeded() -> None:
    told = of(unready(1, "web"), attempt(2, request=Key("default", "other")))
    [one] = told.unready
    assert (one.key, one.condition) == (Key("default", "web"), "Ready=False ErrResourceExists: Taken.")
    assert told.failing == ()
    assert told.tries[0].command.startswith("kubectl ctrl explain foo/web")


def test_conditions_of_the_last_read_count_if_the_controller_writes_no_status() -> None:
    seen = body({"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    shown = case(moment=moment(60), bodies={})
    work = HealthInput(
        controller=FOO, run=RUN, case=shown, attempts=[attempt(1)], qualifier=None, bodies={(FOOS, WEB): seen}
    )
    assert [one.condition for one in health(work).unready] == ["Ready=False"]


def test_failing_waiting_running_and_deleted_objects_are_not_unready() -> None:
    deleted = why(CauseKind.DELETED, at=2)
    for later in (
        unready(2, "web", outcome=Outcome.RETRY),
        unready(2, "web", outcome=Outcome.WAITING),
        unready(2, "web", outcome=None),
        attempt(2, deleted),
    ):
        assert of(unready(1, "web"), later).unready == ()


def test_a_hot_object_comes_with_its_most_frequent_cause() -> None:
    calm = [attempt(number, request=Key("default", f"calm-{number}")) for number in range(1, 9)]
    busy = [
        attempt(
            number, why(by="noisy", changes=step("status.beat", number, number + 1)), request=Key("default", "busy")
        )
        for number in range(10, 30)
    ]
    [hot] = of(*calm, *busy).hot
    assert (hot.key.name, hot.attempts, hot.noops) == ("busy", 20, 20)
    assert (hot.cause, hot.because) == ("Foo status by noisy", 20)


def test_a_predicate_saves_the_noops_triggered_by_status_and_metadata() -> None:
    beat = why(changes=step("status.beat", 1, 2))
    label = why(changes=step("metadata.labels.app", 1, 2))
    edit = why(changes=step("spec.replicas", 1, 2))
    resync = why(CauseKind.RESYNC)
    [saving] = of(
        attempt(1, beat), attempt(2, beat, label), attempt(3, edit), attempt(4, beat, edit), attempt(5, resync)
    ).savings
    assert (saving.resource, saving.predicate, saving.noops, saving.useful) == (FOOS, "generation_changed", 2, 0)
    assert saving.paths[0] == "status.beat"


def test_a_predicate_that_would_also_prevent_work_counts_it() -> None:
    rollout = why(resource=DEPLOYMENTS, changes=step("status.availableReplicas", 1, 2))
    worked = attempt(2, rollout, calls=(wrote("2.1", at=2),))
    [saving] = of(attempt(1, rollout), worked).savings
    assert (saving.noops, saving.useful) == (1, 1)


def test_a_type_without_generation_has_no_savings() -> None:
    """A ConfigMap has no generation, so a predicate on it passes all changes."""
    labelled = why(resource=CONFIGMAPS, changes=step("metadata.labels.app", 1, 2))
    assert of(attempt(1, labelled), attempt(2, labelled)).savings == ()


def test_attempts_with_unrecorded_causes_are_no_savings() -> None:
    beat = why(changes=step("status.beat", 1, 2))
    assert of(attempt(1, beat, causes_total=5)).savings == ()


def test_the_numbers_of_a_dead_controller_end_with_it() -> None:
    gone = Qualifier(state=Inactivity.DEAD, since=NOON + 20, text="It is gone.")
    told = of(attempt(1), qualifier=gone)
    assert told.until == NOON + 20
    assert any(one.command.startswith("kubectl ctrl run foo") for one in told.tries)
