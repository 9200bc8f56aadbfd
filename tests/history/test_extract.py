from __future__ import annotations

import stat
from pathlib import Path

import pytest

from kubectl_ctrl.errors import RecordingError
from kubectl_ctrl.history.extract import RowSelection, copy
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.model.attempt import Attempt, DroppedEcho, ObjectRead, Outcome, Verdict
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.value import replace
from tests.history.made import FOOS, NOON, RUN, recording
from tests.objects import started
from tests.render.samples import CREATED, SCALED

OTHER = replace(RUN, id="r8aa", cluster="c2", context="kind-other", began=NOON + 100)


def body(name: str) -> Obj:
    meta = {"name": name, "namespace": "default", "uid": f"u-{name}", "resourceVersion": "7"}
    return {"metadata": meta, "spec": {"note": f"body of {name}"}}


def attempt(run: str, number: int, name: str) -> Attempt:
    read = ObjectRead(
        verb="get", resource=FOOS, query=f"default/{name}", found=((f"u-{name}", "7"),), objects=(body(name),)
    )
    start = started(f"{run}-{number}", SCALED, at=NOON, started=NOON + number, request=Request("default", name))
    return Attempt(start=start, took=0.04, verdict=Verdict(outcome=Outcome.DONE), calls=(CREATED,), reads=(read,))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two objects in one run, one of them again in a run on another cluster."""
    echo = DroppedEcho(attempt="r7f3-2", request=Request("default", "api"), uid="u-api", version="8", after=0.01)
    recording(tmp_path, attempt("r7f3", 1, "web"), attempt("r7f3", 2, "api"), echo)
    return recording(tmp_path, attempt("r8aa", 1, "web"), run=OTHER)


def held(path: Path, cluster: str, name: str) -> list[RecordedAttempt]:
    with Recording.open(path) as read:
        found = read.attempts(cluster=cluster, resource=FOOS, key=Request("default", name))
        return [read.replayable(one.id, cluster=cluster) for one in found]


def test_a_complete_copy_reads_the_same(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    copied = copy(source, target, RowSelection(every=True))
    assert (copied.runs, copied.attempts, copied.damaged) == (2, 3, ())
    for cluster, name in (("c1", "web"), ("c1", "api"), ("c2", "web")):
        assert held(target, cluster, name) == held(source, cluster, name) != []
    with Recording.open(source) as before, Recording.open(target) as after:
        assert after.filled() == before.filled()
        assert after.known() == before.known()


def test_one_run_is_copied_without_rows_of_others(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    assert copy(source, target, RowSelection(runs=("r8aa",))).attempts == 1
    assert held(target, "c2", "web") == held(source, "c2", "web")
    with Recording.open(target) as read:
        assert [run.id for run in read.runs()] == ["r8aa"]
        assert [cluster.key for cluster in read.clusters()] == ["c2"]
    assert b"kind-dev" not in target.read_bytes()


def test_attempts_are_copied_with_their_run_and_no_other_attempts(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    assert copy(source, target, RowSelection(attempts=("r7f3-2",), cluster="c1")).attempts == 1
    assert held(target, "c1", "api") == held(source, "c1", "api")
    assert held(target, "c1", "web") == []
    assert held(target, "c1", "api")[0].heard


def test_the_copy_is_one_private_file(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    copy(source, folder / "copy.db", RowSelection(every=True))
    assert [one.name for one in folder.iterdir()] == ["copy.db"]
    assert stat.S_IMODE((folder / "copy.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("there", ["file", "link", "no folder"])
def test_s05_no_file_is_overwritten_and_no_link_followed(source: Path, tmp_path: Path, there: str) -> None:
    target = tmp_path / ("missing/copy.db" if there == "no folder" else "copy.db")
    precious = tmp_path / "precious"
    if there == "file":
        target.write_text("mine")
    if there == "link":
        target.symlink_to(precious)
    with pytest.raises(RecordingError, match=r"copy\.db"):
        copy(source, target, RowSelection(every=True))
    assert not precious.exists()
    assert there != "file" or target.read_text() == "mine"


def test_the_readable_part_of_a_corrupt_file_is_copied(source: Path, tmp_path: Path) -> None:
    whole = bytearray(source.read_bytes())
    target = tmp_path / "copy.db"
    # The pages of the bodies, which come last, by the first bytes of zlib data.
    at = whole.rfind(b"\x58\x09")
    page = at // 4096 * 4096
    whole[page : page + 64] = b"\xff" * 64
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(whole)
    copied = copy(damaged, target, RowSelection(every=True))
    assert copied.damaged == ("body",)
    assert copied.attempts == 3
    assert [one.id for one in held(target, "c1", "api")] == ["r7f3-2"]
