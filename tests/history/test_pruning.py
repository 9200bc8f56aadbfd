"""Caps: the deleted rows, the remaining rows, and the size of the file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import NotRecorded
from kubectl_ctrl.history import writer
from kubectl_ctrl.history.pruning import DAY, EVERYTHING, Caps, PruneSelection, file_size, prune
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.history.writer import Recorder
from kubectl_ctrl.model.attempt import Attempt, BackgroundCall, DroppedEcho
from kubectl_ctrl.model.record import RecordedRun
from kubectl_ctrl.value import replace
from tests.history.made import FOOS, NOON, RUN, begun, done, owned, read_of, recording
from tests.render.samples import CREATED

WEB = begun(1).request


def of_run(run: RecordedRun, count: int, first: int = 1) -> list[Attempt]:
    """Attempts, each with a read of another version."""
    made = []
    for number in range(first, first + count):
        obj = owned("Foo", "web", f"u-{run.id}", str(number), text=str(number) * 40)
        made.append(done(begun(number, run=run.id, at=run.began), reads=(read_of(obj),)))
    return made


OLD = replace(RUN, id="rold", began=NOON - 10 * DAY)
NEW = replace(RUN, id="rnew", began=NOON)


def rows(path: Path) -> dict[str, int]:
    names = ["run", "type", "subject", "object", "attempt", "about", "link", "sent", "later", "body", "moment"]
    with closing(sqlite3.connect(path)) as connection:
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}


def ids(path: Path) -> list[str]:
    with Recording.open(path) as read:
        return [one.id for one in read.attempts(cluster="c1", resource=FOOS, key=WEB)]


def test_old_attempts_are_deleted_with_all_their_rows(tmp_path: Path) -> None:
    path = recording(tmp_path, *of_run(NEW, 2), run=NEW)
    expected = rows(path)
    path.unlink()
    echo = DroppedEcho(attempt="rold-1", request=WEB, uid="u", version="1", after=0.1)
    extra = (echo, BackgroundCall(attempt="rold-1", call=CREATED), BackgroundCall(attempt="", call=CREATED))
    recording(tmp_path, *of_run(OLD, 700), *extra, run=OLD)
    _seen_long_ago(path, OLD)
    recording(tmp_path, *of_run(NEW, 2), run=NEW)
    before = path.stat().st_size
    pruned = prune(path, PruneSelection(before=NOON - DAY), NOON)
    assert (pruned.attempts, pruned.runs) == (700, 1)
    assert rows(path) == expected
    assert pruned.size_after == file_size(path) < before / 2
    assert ids(path) == ["rnew-1", "rnew-2"]
    assert prune(path, PruneSelection(before=NOON - DAY), NOON).attempts == 0


def _seen_long_ago(path: Path, run: RecordedRun) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET seen = began + 60, ended = began + 60 WHERE name = ?", (run.id,))
        connection.commit()


def test_the_newest_run_stays_at_any_age(tmp_path: Path) -> None:
    path = recording(tmp_path, *of_run(OLD, 5), run=OLD)
    _seen_long_ago(path, OLD)
    assert prune(path, PruneSelection(before=NOON), NOON).attempts == 0
    assert len(ids(path)) == 5


def test_an_active_run_loses_old_attempts_and_keeps_running_ones(tmp_path: Path) -> None:
    path = recording(tmp_path, *of_run(OLD, 3), begun(9, run="rold", at=NOON), run=OLD)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET ended = NULL, seen = ?", (NOON,))
        connection.commit()
    prune(path, PruneSelection(before=NOON - DAY), NOON)
    assert ids(path) == ["rold-9"]
    prune(path, PruneSelection(before=EVERYTHING, newest=False), NOON + 1)
    assert ids(path) == ["rold-9"]


def test_everything_is_deleted_on_request(tmp_path: Path) -> None:
    path = recording(tmp_path, *of_run(OLD, 5), run=OLD)
    recording(tmp_path, *of_run(NEW, 5), run=NEW)
    for run in (OLD, NEW):
        _seen_long_ago(path, run)
    assert prune(path, PruneSelection(before=EVERYTHING, newest=False), NOON + DAY).attempts == 10
    assert rows(path)["body"] == rows(path)["object"] == rows(path)["subject"] == 0
    assert rows(path)["run"] == 1, "the newest run is still known"


def test_one_cluster_can_be_pruned_alone(tmp_path: Path) -> None:
    path = recording(tmp_path, *of_run(OLD, 5), run=replace(OLD, cluster="c2"))
    recording(tmp_path, *of_run(NEW, 5), run=NEW)
    assert prune(path, PruneSelection(before=EVERYTHING, cluster="c2"), NOON).attempts == 5
    assert len(ids(path)) == 5


def test_bodies_stay_while_an_attempt_may_refer_to_them(tmp_path: Path) -> None:
    """One version that attempts read for weeks, the first of which are deleted."""
    obj = owned("Foo", "web", "u-web", "10")
    attempts = [
        replace(one, start=replace(one.start, started=NOON + number * 300.0))
        for number in range(1, 20)
        for one in [done(begun(number), reads=(read_of(obj),))]
    ]
    path = recording(tmp_path, *attempts)
    recording(tmp_path, run=replace(RUN, id="rnew", began=NOON + DAY))
    prune(path, PruneSelection(before=NOON + 3000), NOON + 6000)
    left = ids(path)
    assert left[0] == "r7f3-10"
    with Recording.open(path) as read:
        assert [read.replayable(one).reads[0].objects for one in left] == [(obj,)] * len(left)


@pytest.mark.parametrize("runs", [(OLD, NEW), (NEW,)])
def test_a_recorder_stays_within_its_cap_and_keeps_the_newest_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: Sequence[RecordedRun]
) -> None:
    monkeypatch.setattr(writer, "_CHECK_EVERY", 0.0)
    clock, path, most = SystemClock(), tmp_path / "history.db", 400_000
    for run in runs:
        now = replace(run, began=clock.now())
        recorder = Recorder(path, now, clock=clock, caps=Caps(size=most))
        for number in range(1, 2000):
            one = replace(done(begun(number, run=run.id, at=now.began - 2000)), traceback=f"{number} " * 300)
            recorder.observe(one)
        last = f"{run.id}-1999"
        _until(lambda: path.exists() and file_size(path) < most * 1.2 and last in ids(path))  # noqa: B023
        recorder.close()
    assert file_size(path) < most * 1.2
    kept = ids(path)
    assert kept[-1] == f"{runs[-1].id}-1999"
    assert len(kept) > 50
    assert [one.rpartition("-")[0] for one in kept] == [runs[-1].id] * len(kept), "of older runs there is nothing left"
    numbers = [int(one.rpartition("-")[2]) for one in kept]
    assert numbers == list(range(numbers[0], 2000)), "the oldest went first"


def test_a_run_continues_after_others_delete_its_rows(tmp_path: Path) -> None:
    """Its remembered row ids of objects and subjects are invalid then."""
    clock, path = SystemClock(), tmp_path / "history.db"
    run = replace(NEW, began=clock.now())
    recorder = Recorder(path, run, clock=clock)
    first, second = of_run(run, 2)
    recorder.observe(first)
    _until(lambda: rows(path)["attempt"] == 1)
    assert prune(path, PruneSelection(before=EVERYTHING, newest=False), clock.now()).attempts == 1
    recorder.observe(second)
    recorder.close()
    assert ids(path) == ["rnew-2"]
    assert rows(path) == {**rows(path), "subject": 1, "object": 1, "run": 1}


def _until(holds: Callable[[], bool]) -> None:
    """Wait for another thread."""
    pause = threading.Event()
    for _ in range(2000):
        with suppress(sqlite3.OperationalError, NotRecorded):  # no table exists yet
            if holds():
                return
        pause.wait(0.01)
    raise AssertionError("it did not come to hold")
