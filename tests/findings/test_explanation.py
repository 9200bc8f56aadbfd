from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.findings.account import Account, Finding, Inactivity, Risk
from kubectl_ctrl.findings.explanation import explain
from kubectl_ctrl.model.attempt import Outcome, WaitingRequest
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.diffs import ABSENT
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import FactSource, RecordedAttempt
from kubectl_ctrl.model.resources import DEPLOYMENTS, Resource
from kubectl_ctrl.value import replace
from tests.findings.made import (
    OURS,
    WEB,
    attempt,
    body,
    case,
    held,
    looked,
    moment,
    retry,
    step,
    why,
    wish,
    wrote,
)
from tests.history.made import FOOS, NOON, RUN

DENIED = (
    'The server refused patch deployments.apps default/web: deployments.apps "web" is forbidden: User '
    '"system:serviceaccount:foo-system:kubectl-ctrl-foo" cannot patch resource "deployments" in API group "apps" in '
    'the namespace "default".'
)


def said(account: Account) -> str:
    return "\n".join(fact.text for fact in account.why)


def commands(account: Account) -> list[str]:
    return [one.command for one in account.tries]


# --- GONE ---


def test_gone_after_the_event_of_its_deletion() -> None:
    account = explain(case(attempt(1), attempt(2, why(CauseKind.DELETED, at=2, old_version="7"))))
    assert (account.finding, account.since, account.good) == (Finding.GONE, NOON + 2, True)
    assert "version" in account.evidence[0].text
    assert account.next[0].text == "nothing; a new Foo with this name would be reconciled"


def test_gone_if_the_last_attempt_did_not_find_it() -> None:
    account = explain(case(attempt(1), attempt(2, reads=(looked(),), uid="")))
    assert account.finding is Finding.GONE
    assert "#2 did not find it" in said(account)


def test_gone_since_its_deletion_also_if_deleted_children_trigger_the_controller_later() -> None:
    deleted = why(CauseKind.DELETED, at=2, old_version="4")
    along = why(CauseKind.DELETED, at=3, resource=DEPLOYMENTS, uid="uid-deployment")
    runs = attempt(3, along, uid="", outcome=None)
    for last in (runs, attempt(3, along, reads=(looked(),), uid="")):
        account = explain(case(attempt(1), attempt(2, deleted), last))
        assert (account.finding, account.since) == (Finding.GONE, NOON + 2)
        assert "it was deleted" in said(account)
        assert "uid uid-web" in account.evidence[0].text
    found = attempt(3, along, reads=(looked(("uid-web", "9")),))
    assert explain(case(attempt(1), attempt(2, deleted), found)).finding is Finding.CONVERGED


def test_gone_if_the_cluster_has_no_such_object() -> None:
    account = explain(case(attempt(1), bodies={(FOOS, WEB): body(source=FactSource.LIVE, at=50)}))
    assert (account.finding, account.source) == (Finding.GONE, FactSource.LIVE)


def test_not_gone_if_it_was_created_again() -> None:
    deleted, made = why(CauseKind.DELETED, at=2), why(CauseKind.ADDED, at=2.1)
    assert explain(case(attempt(1), attempt(3, deleted, made))).finding is Finding.CONVERGED


# --- BLOCKED DELETION ---

DELETING: dict[str, Any] = {
    "deletionTimestamp": "2026-01-01T12:00:30Z",
    "finalizers": ["example.com/hold"],
    "resourceVersion": "9",
}


def test_a_foreign_finalizer_blocks_deletion_and_its_owner_is_named() -> None:
    obj = body(
        at=31,
        **DELETING,
        managedFields=[
            {
                "manager": "backup-operator",
                "operation": "Update",
                "time": "2026-01-01T12:00:10Z",
                "fieldsV1": {"f:metadata": {"f:finalizers": {'v:"example.com/hold"': {}}}},
            }
        ],
    )
    account = explain(case(attempt(1), bodies={(FOOS, WEB): obj}))
    assert (account.finding, account.since) == (Finding.BLOCKED_DELETION, NOON + 30)
    assert "finalizer example.com/hold: belongs to backup-operator, not to this controller" in said(account)
    assert account.tries[-1].risk is Risk.DESTROY
    assert '"value": "example.com/hold"' in account.tries[-1].command


def test_an_own_finalizer_of_a_dead_controller_blocks_deletion() -> None:
    added = attempt(1, wishes=(wish("add_finalizer", {"finalizer": "example.com/hold"}, resource=FOOS),))
    run = replace(RUN, seen=NOON + 20)
    gone = case(added, bodies={(FOOS, WEB): body(at=31, **DELETING)}, run=run, life=Life.GONE, moment=moment(20))
    account = explain(gone)
    assert account.finding is Finding.BLOCKED_DELETION
    assert "belongs to foo, this controller; it is dead" in said(account)
    assert "kubectl ctrl run foo --namespace=default" in commands(account)


def test_the_garbage_collector_is_recognized_by_its_finalizer() -> None:
    obj = body(at=31, **{**DELETING, "finalizers": ["foregroundDeletion"]})
    assert "garbage collector" in said(explain(case(attempt(1), bodies={(FOOS, WEB): obj})))


# --- NOT SEEN, NEVER RAN ---


def test_not_seen_outside_the_namespace_of_the_run() -> None:
    account = explain(replace(case(), key=Key("other", "web"), flags=("--namespace=other",)))
    assert account.finding is Finding.NOT_SEEN
    assert "run r7f3 watches only namespace default; this object is in other" in said(account)
    assert "kubectl ctrl run foo --namespace=other" in commands(account)


def test_not_seen_without_the_labels_of_the_run() -> None:
    obj = body({"spec": {}}, labels={"app": "db"})
    account = explain(case(bodies={(FOOS, WEB): obj}, run=replace(RUN, labels="app=web", seen=NOON + 60)))
    assert account.finding is Finding.NOT_SEEN
    assert "watches only objects with labels app=web; this object has app=db" in said(account)
    assert any(command.startswith("kubectl label foo/web app=web") for command in commands(account))


def test_not_seen_if_a_predicate_filtered_out_a_change_of_its_spec() -> None:
    account = explain(case(attempt(1), moment=moment(60, held("labels changed", at=30))))
    assert (account.finding, account.since) == (Finding.NOT_SEEN, NOON + 30)
    assert "filtered out by 'labels changed'" in said(account)
    assert "its last change (spec.replicas by <unknown>)" in said(account)


def test_a_filtered_change_of_the_status_is_a_fact_of_the_verdict() -> None:
    account = explain(case(attempt(1), moment=moment(60, held("generation changed", at=30, changed=("status.ready",)))))
    assert account.finding is Finding.CONVERGED
    assert "a later change (status.ready) was filtered out by 'generation changed'" in said(account)
    before = explain(case(attempt(40), moment=moment(60, held("generation changed", at=30))))
    assert "filtered out" not in said(before)


def test_not_seen_if_its_creation_was_filtered_out() -> None:
    account = explain(case(moment=moment(60, held("is big", at=5, changed=()))))
    assert account.finding is Finding.NOT_SEEN


def test_not_seen_without_its_crd() -> None:
    message = "foos.samplecontroller.k8s.io is not installed"
    account = explain(case(moment=moment(60, synced=False, message=message)))
    assert account.finding is Finding.NOT_SEEN
    assert account.qualifier is not None
    assert account.qualifier.state is Inactivity.UNREADY
    assert any("ctrl install foo" in command for command in commands(account))
    # A reconcile that began after that state shows that the type was installed meanwhile.
    later = explain(case(attempt(60, at=60.1), moment=moment(60, synced=False, message=message), now=61))
    assert later.finding is Finding.CONVERGED


def test_never_ran_while_it_is_queued() -> None:
    entry = WaitingRequest(request=WEB, state="ready", since=NOON + 50, causes=2)
    account = explain(case(moment=moment(60, entries=(entry,))))
    assert (account.finding, account.since) == (Finding.NEVER_RAN, NOON + 50)
    assert "it is in the queue (ready) with 2 causes" in said(account)


def test_a_reconcile_whose_start_is_not_recorded_yet_is_running() -> None:
    entry = WaitingRequest(request=WEB, state="running", since=NOON + 50, attempt="r7f3-2")
    first = explain(case(moment=moment(60, entries=(entry,))))
    assert (first.finding, first.why[0].text) == (Finding.NEVER_RAN, "its first reconcile is running")
    later = explain(case(attempt(1), moment=moment(60, entries=(entry,))))
    assert (later.finding, later.why[0].text) == (Finding.WAITING, "a reconcile is running")
    # The run before was killed.
    after = explain(case(attempt(1, outcome=None, interrupted=True), moment=moment(60, entries=(entry,))))
    assert after.next[0].text == "a reconcile is running; its result decides what follows"


def test_never_ran_without_any_controller() -> None:
    account = explain(case(controller=None, run=None, moment=None))
    assert account.finding is Finding.NEVER_RAN
    assert "no controller for foos.samplecontroller.k8s.io is recorded" in said(account)


# --- LOOPING ---


def by_itself(number: int, *, by: str = OURS) -> RecordedAttempt:
    return attempt(
        number, why(at=number - 0.99, by=by, new_version=str(number), changes=step("spec.n", number, number + 1))
    )


def test_looping_if_its_writes_outside_ctx_write_trigger_it() -> None:
    account = explain(case(attempt(1), by_itself(2), by_itself(3)))
    assert (account.finding, account.source) == (Finding.LOOPING, FactSource.RECORDED)
    assert "foo triggers itself: it writes Foo/web spec.n outside ctx.write, as kubectl-ctrl-foo" in said(account)
    assert "#2 → #3" in said(account)
    assert "version 2 (uid uid-web), which no recorded call wrote" in account.evidence[0].text


def test_triggering_itself_once_is_no_loop() -> None:
    assert explain(case(attempt(1), by_itself(2))).finding is Finding.CONVERGED


def test_writes_through_ctx_write_are_no_loop() -> None:
    writers = {("uid-web", "2"): ("r7f3-1", "r7f3-1.1"), ("uid-web", "3"): ("r7f3-2", "r7f3-2.1")}
    account = explain(case(attempt(1), by_itself(2), by_itself(3), writers=writers))
    assert account.finding is Finding.CONVERGED


def test_a_loop_under_another_manager_is_inferred() -> None:
    turns = [attempt(n, why(at=n - 0.99, by="OpenAPI-Generator", new_version=str(n))) for n in range(2, 6)]
    account = explain(case(attempt(1), *turns))
    assert (account.finding, account.source) == (Finding.LOOPING, FactSource.INFERRED)
    strangers = [attempt(n, why(at=n - 0.5, by="somebody", new_version=str(n))) for n in range(2, 6)]
    assert explain(case(attempt(1), *strangers)).finding is Finding.CONVERGED


@pytest.mark.parametrize(
    ("by", "resource", "path"),
    [
        ("kube-controller-manager", DEPLOYMENTS, "metadata.annotations"),
        ("kube-controller-manager", DEPLOYMENTS, "status.replicas"),
        ("some-operator", DEPLOYMENTS, "status.conditions"),
        ("", DEPLOYMENTS, "status.replicas"),  # all within one second
    ],
)
def test_writes_of_the_controller_of_another_object_are_no_loop(by: str, resource: Resource, path: str) -> None:
    """A rollout: many changes of a status, each during the attempt that the previous one triggered."""

    def woken(number: int) -> RecordedAttempt:
        at, changes = 2 + number / 50, step(path, 1, number)
        return attempt(number, why(at=at, by=by, resource=resource, new_version=str(number), changes=changes), at=at)

    steps = map(woken, range(2, 9))
    assert explain(case(attempt(1), *steps)).finding is Finding.CONVERGED


def test_writes_in_one_second_without_a_known_manager_count_with_those_around_them() -> None:
    turns = [by_itself(2), by_itself(3, by=""), by_itself(4, by=""), by_itself(5), by_itself(6, by="")]
    account = explain(case(attempt(1), *turns))
    assert account.finding is Finding.LOOPING
    assert "5 reconciles in a row" in said(account)


def test_a_write_by_one_of_several_managers_counts_with_those_around_it() -> None:
    turns = [by_itself(2), by_itself(3, by=f"ed or {OURS}"), by_itself(4)]
    assert "3 reconciles in a row" in said(explain(case(attempt(1), *turns)))


def test_writes_without_any_known_manager_are_an_inferred_loop() -> None:
    account = explain(case(attempt(1), *(by_itself(number, by="") for number in range(2, 9))))
    assert (account.finding, account.source) == (Finding.LOOPING, FactSource.INFERRED)
    strangers = [attempt(n, why(at=n - 0.5, by="", new_version=str(n))) for n in range(2, 9)]
    assert explain(case(attempt(1), *strangers)).finding is Finding.CONVERGED


# --- NOT CONVERGED ---


def test_a_failing_reconcile_with_its_chain_its_call_and_its_retry() -> None:
    failing: dict[str, Any] = {
        "outcome": Outcome.RETRY,
        "delay": 4.0,
        "message": DENIED,
        "error_id": "CTRL-FORBIDDEN",
        "where": "foo/reconciler.py:88",
    }
    call = wrote("3.1", at=50.01, code=403, error="It is forbidden.", reason="Forbidden", uid="")
    account = explain(
        case(
            attempt(1, why(at=30), at=30, **failing),
            attempt(2, retry(1, at=31), at=40, try_no=2, **failing),
            attempt(3, retry(2, at=41), at=58, try_no=3, calls=(call,), **failing),
        )
    )
    assert (account.finding, account.since) == (Finding.NOT_CONVERGED, NOON + 30)
    assert "system:serviceaccount:foo-system:kubectl-ctrl-foo cannot patch apps/deployments in default" in said(account)
    assert [one.attempt.number for one in account.chain] == [1, 2, 3]
    assert account.chain[0].cause is not None
    assert account.chain[0].cause.writers == ("kubectl-edit",)
    assert (account.where, account.call) == ("foo/reconciler.py:88", call)
    assert account.next[0].at == pytest.approx(NOON + 62.02)
    rbac = "kubectl ctrl rbac foo --missing --output=yaml"
    assert commands(account) == [rbac, f"{rbac} | kubectl apply -f -"]


def test_a_terminal_error_is_not_retried() -> None:
    schedule = ("its next scheduled run or a change", "it runs again on its schedule")
    for delay, (until, coming) in enumerate([("a change", "only a change triggers it again"), schedule]):
        account = explain(case(attempt(1, outcome=Outcome.TERMINAL, message="spec.size is -1.", delay=delay)))
        assert f"terminal: no retry until {until}" in said(account)
        assert (account.finding, account.next[0].text) == (Finding.NOT_CONVERGED, f"no retry: {coming}")


def test_an_interrupted_attempt_is_not_converged() -> None:
    assert explain(case(attempt(1), attempt(2, outcome=None, interrupted=True))).finding is Finding.NOT_CONVERGED
    assert explain(case(attempt(1, outcome=Outcome.DROPPED))).finding is Finding.NOT_CONVERGED


def test_an_unready_object_is_not_converged_after_a_successful_reconcile() -> None:
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "NameMissing", "message": "Set it."}]}
    account = explain(case(attempt(1, wishes=(wish("status", status, resource=FOOS),))))
    assert account.finding is Finding.NOT_CONVERGED
    assert "it reports Ready=False NameMissing: Set it." in said(account)


def test_the_gap_is_the_requested_state_that_is_missing() -> None:
    wanted = {"metadata": {"name": "web"}, "spec": {"replicas": 7, "paused": False}}
    live = body({"spec": {"replicas": 5, "paused": False}}, at=20)
    failed = attempt(30, outcome=Outcome.RETRY, message="no", wishes=(wish("ensure", wanted, how=""),))
    [gap] = explain(case(failed, bodies={(DEPLOYMENTS, WEB): live})).gap
    assert (gap.path, gap.want, gap.live, gap.source) == ("spec.replicas", 7, 5, FactSource.RECORDED)
    [gap] = explain(case(failed)).gap
    assert (gap.path, gap.live) == ("", ABSENT)


# --- WAITING ---


def test_waiting_has_a_reason_a_start_and_the_usual_duration() -> None:
    before = [
        attempt(1, outcome=Outcome.WAITING, message="rollout 0/3"),
        attempt(5, message=""),
    ]
    now = [attempt(number, outcome=Outcome.WAITING, message=f"rollout {number - 19}/3") for number in (20, 21)]
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "It hangs."}
    deployment = body({"spec": {"replicas": 3}, "status": {"availableReplicas": 2, "conditions": [stuck]}})
    account = explain(case(*before, *now, bodies={(DEPLOYMENTS, WEB): deployment}))
    assert (account.finding, account.since) == (Finding.WAITING, NOON + 20)
    assert "#21 waits for rollout 2/3" in said(account)
    assert "Deployment/web reports Progressing=False ProgressDeadlineExceeded: It hangs." in said(account)
    assert "it usually takes 4s (one earlier wait); this one is taking longer" in said(account)
    [gap] = account.gap
    assert (gap.path, gap.want, gap.live) == ("status.availableReplicas", 3, 2)


def test_a_wait_is_compared_with_waits_for_the_same_and_names_the_refusal() -> None:
    before = [attempt(1, outcome=Outcome.WAITING, message="rollout 0/3"), attempt(5)]
    denied = wrote("20.1", at=20.01, code=422, error="ValidatingAdmissionPolicy 'nope' denied request: no.")
    last = attempt(20, outcome=Outcome.WAITING, message="an admission rule", calls=(denied,))
    account = explain(case(*before, last))
    assert not [text for text in said(account) if "usually" in text]
    assert "r7f3-20.1: ValidatingAdmissionPolicy 'nope' denied request: no." in said(account)


def test_waiting_for_a_dead_controller_suggests_to_start_it() -> None:
    account = explain(case(attempt(1, outcome=Outcome.WAITING, message="rollout 0/3"), life=Life.GONE))
    assert "kubectl ctrl run foo --namespace=default" in commands(account)


def test_waiting_while_a_reconcile_runs_or_is_queued() -> None:
    assert explain(case(attempt(1), attempt(2, outcome=None))).finding is Finding.WAITING
    queued = moment(60, entries=(WaitingRequest(request=WEB, state="ready", since=NOON + 59, causes=1),))
    assert explain(case(attempt(1), moment=queued)).finding is Finding.WAITING


@pytest.mark.parametrize(
    ("state", "taker", "at", "expected"),
    [
        ("ready", 0, 0.9, "no retry: only a change triggers it again"),  # the attempt took it
        ("running", 1, 1.01, "no retry: only a change triggers it again"),  # it is the attempt
        ("running", 1, 2, "no retry: only a change triggers it again"),  # and leaves the queue after its end
        ("ready", 0, 2, "a reconcile is queued and starts as soon as a worker is free"),
        ("running", 2, 2, "a reconcile is running; its result decides what follows"),  # its start is not recorded yet
    ],
)
def test_a_queue_entry_counts_if_it_is_newer_than_the_last_attempt(
    state: str, taker: int, at: float, expected: str
) -> None:
    id_ = f"r7f3-{taker}" if taker else ""
    entries = (WaitingRequest(request=WEB, state=state, since=NOON + 0.8, causes=1, attempt=id_),)
    account = explain(case(attempt(1, outcome=Outcome.TERMINAL), moment=moment(at, entries=entries), now=2.1))
    assert account.finding is Finding.NOT_CONVERGED
    assert account.next[0].text == expected


# --- CONVERGED ---


def test_converged_names_the_maintained_objects_the_last_write_and_the_triggers() -> None:
    first = attempt(1, calls=(wrote("1.1", "create", at=1.01, code=201),))
    kept = attempt(9, why(at=8, by=""), wishes=(wish("ensure", {}),))
    account = explain(case(first, kept))
    assert (account.finding, account.good) == (Finding.CONVERGED, True)
    assert "reconcile #9 found nothing to change; it maintains Deployment/web" in said(account)
    assert "last write: create Deployment/web 201 by #1.1" in said(account)
    assert [one.text for one in account.next] == ["nothing is queued, no timer", "triggered by Foo, owned Deployment"]


@pytest.mark.parametrize(
    ("life", "seen", "expected"),
    [
        (Life.GONE, 20.0, Inactivity.DEAD),
        (Life.SILENT, 20.0, Inactivity.UNHEARD),
        (Life.ELSEWHERE, 20.0, Inactivity.UNHEARD),
        (Life.ENDED, 30.0, Inactivity.ENDED),
    ],
)
def test_converged_is_not_good_with_an_inactive_controller(life: Life, seen: float, expected: Inactivity) -> None:
    run = replace(RUN, seen=NOON + seen, ended=NOON + seen if life is Life.ENDED else None)
    account = explain(case(attempt(1), run=run, life=life, moment=moment(seen)))
    assert account.qualifier is not None
    assert (account.finding, account.good) == (Finding.CONVERGED, False)
    assert (account.qualifier.state, account.qualifier.since) == (expected, NOON + seen)
    silent = expected is Inactivity.UNHEARD  # it may be active and unable to record
    assert account.next[0].text.startswith(
        "unknown: foo has recorded nothing" if silent else "nothing while foo is inactive"
    )


def test_a_suspended_controller_is_resumed_and_not_started_again() -> None:
    account = explain(case(attempt(1), life=Life.STOPPED))
    assert account.next[0].text == "nothing while foo is suspended; once resumed, it continues where it stopped"
    assert f"kill -CONT {RUN.pid}" in commands(account)
    assert not [line for line in commands(account) if "ctrl run" in line]


def test_the_creation_is_no_edit_if_a_later_change_begins_the_chain() -> None:
    made = attempt(1, why(CauseKind.ADDED, at=0.5))
    labelled = attempt(2, why(at=1.5, changes=step("metadata.labels.a", None, "b")), calls=(wrote("2.1", at=2.01),))
    assert explain(case(made, labelled)).edited is None


def test_a_state_older_than_the_last_attempt_is_ignored() -> None:
    starting = moment(0.5, synced=False, message="the cache of deployments.apps is starting")
    assert explain(case(attempt(1), moment=starting, now=2)).qualifier is None


def test_a_controller_that_does_not_lead_is_paused() -> None:
    account = explain(
        case(attempt(1), moment=moment(60, leading=False, message="the run does not hold the Lease of foo"))
    )
    assert account.qualifier is not None
    assert account.qualifier.state is Inactivity.PAUSED


# --- always ---


def test_every_account_has_a_command_and_a_next_trigger() -> None:
    for one in (case(), case(attempt(1)), case(attempt(1, outcome=Outcome.RETRY, message="no")), case(controller=None)):
        account = explain(one)
        assert account.tries
        assert account.next
        assert account.why
