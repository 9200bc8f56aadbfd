from __future__ import annotations

from dataclasses import replace

from kubectl_ctrl.model.cause import Cause
from kubectl_ctrl.model.change import Change
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.runtime.echoes import Echoes, Written
from kubectl_ctrl.runtime.watching import cause_of
from tests.runtime.toy import CONFIGMAPS, TOYS, added, at, deleted, made, modified

US, THEM = "kubectl-ctrl-toy", "kubectl-edit"
BEAR, ROBOT = Key("default", "bear"), Key("default", "robot")
BEFORE = made(TOYS, "bear")


def by(manager: str, obj: Obj, version: str, time: str = "2026-01-01T00:00:00Z") -> Obj:
    """The object after a write of that manager."""
    entry = {"manager": manager, "operation": "Apply", "time": time, "fieldsV1": {}}
    others = [other for other in obj["metadata"].get("managedFields", ()) if other["manager"] != manager]
    return at(obj, version, metadata={"managedFields": [*others, entry]})


def written(version: str, *, request: Key = BEAR, at: float = 0.0, certain: bool = False) -> Written:
    return Written(
        request=request, attempt="r7f3-1", resource=TOYS, uid="uid-bear", version=version, at=at, certain=certain
    )


def why(change: Change) -> Cause:
    return cause_of(change, 5.0)


OURS = why(modified(TOYS, BEFORE, by(US, BEFORE, "2")))
THEIRS = why(modified(TOYS, BEFORE, by(THEM, BEFORE, "2")))


def echoes(*writes: Written) -> Echoes:
    found = Echoes(US)
    for write in writes:
        found.wrote(write)
    return found


def test_the_event_of_an_own_write_is_an_echo_once() -> None:
    book = echoes(written("2"))
    assert book.match(BEAR, OURS) == written("2")
    assert book.match(BEAR, OURS) is None


def test_it_is_an_echo_only_for_the_request_that_made_the_write() -> None:
    assert echoes(written("2")).match(ROBOT, OURS) is None


def test_another_version_or_another_object_is_news() -> None:
    book = echoes(written("3"), replace(written("2"), uid="of the one before"))
    assert book.match(BEAR, OURS) is None


def test_a_write_that_changed_nothing_answers_a_foreign_version_which_stays_news() -> None:
    assert echoes(written("2")).match(BEAR, THEIRS) is None


def test_an_answer_that_proves_itself_needs_no_managed_fields() -> None:
    plain = why(added(TOYS, BEFORE))
    assert echoes(written("1")).match(BEAR, plain) is None
    assert echoes(written("1", certain=True)).match(BEAR, plain) is not None


def test_the_proof_of_a_write_is_not_weakened_by_a_later_one_that_changed_nothing() -> None:
    book = echoes(written("2", certain=True), written("2"))
    assert book.match(BEAR, THEIRS) is not None


def test_what_a_later_list_found_is_never_an_echo() -> None:
    relisted = why(modified(TOYS, BEFORE, by(US, BEFORE, "2"), relisted=True))
    assert echoes(written("2", certain=True)).match(BEAR, relisted) is None


def test_a_deletion_an_initial_object_and_a_cause_without_object_are_news() -> None:
    book = echoes(written("1", certain=True), written("9", certain=True))
    assert book.match(BEAR, why(deleted(TOYS, BEFORE))) is None
    assert book.match(BEAR, why(added(TOYS, BEFORE, initial=True))) is None
    assert book.match(BEAR, replace(OURS, new_version="", uid="")) is None


def test_a_new_epoch_forgets_the_writes_of_that_resource() -> None:
    book = echoes(written("2"), replace(written("7"), resource=CONFIGMAPS))
    book.new_epoch(TOYS)
    assert book.match(BEAR, OURS) is None
    assert repr(book) == "Echoes(kubectl-ctrl-toy, awaited=1)"


def test_writes_whose_events_never_come_are_forgotten() -> None:
    book = echoes(*(written(str(version), at=version) for version in range(1000)))
    assert len(book) == 601
    book = echoes(*(written(str(version)) for version in range(20_010)))
    assert len(book) == 20_000
