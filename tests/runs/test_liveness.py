"""Who runs, who was killed and who is only silent: from recorded runs and from the locks of processes."""

from __future__ import annotations

import os
from pathlib import Path

from kubectl_ctrl.model.attempt import ControllerState
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.record import RecordedController, RecordedRun, RecordedState
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.runs.holder import identity, is_stopped
from kubectl_ctrl.runs.liveness import RunEvidence, sightings
from kubectl_ctrl.runs.runners import Runner
from kubectl_ctrl.value import replace

NOW = 1_000_000.0
FOO = RecordedController(name="foo", word="foo", primaries=(DEPLOYMENTS,), manager="kubectl-ctrl-foo")
MINE = RecordedController(name="mine", word="./mine.py", primaries=(DEPLOYMENTS,), manager="kubectl-ctrl-mine")
RUN = RecordedRun(
    id="r1",
    cluster="c",
    context="kind-ctrl",
    server="https://127.0.0.1:6443",
    namespace="default",
    controllers=(FOO,),
    pid=os.getpid(),
    host="laptop",
    holder=identity("r1"),
    program="0.5.0",
    began=NOW - 100,
    seen=NOW - 1,
)
RUNNER = Runner(
    cluster="c",
    controller="foo",
    scope="default",
    pid=os.getpid(),
    run="r1",
    controllers=("foo",),
    context="kind-ctrl",
    since=NOW - 100,
    holder=identity("r1"),
)


def moment(run: str, at: float, controller: str = "foo") -> RecordedState:
    return RecordedState(
        run=run, state=ControllerState(controller=controller, at=at, leading=True, synced=True, entries=())
    )


def lives(traces: RunEvidence, controller: str = "") -> list[tuple[str, str, Life]]:
    return [(one.controller, one.run, one.life) for one in sightings(traces, NOW, controller=controller)]


def test_one_whose_lock_is_held_runs_and_one_whose_lock_is_free_is_gone() -> None:
    traces = RunEvidence(runs=[RUN], moments=[moment("r1", NOW - 1)], runners=[RUNNER])
    assert lives(traces) == [("foo", "r1", Life.RUNNING)]
    [gone] = sightings(replace(traces, runners=[]), NOW)
    assert (gone.life, gone.seen, gone.state) == (Life.GONE, NOW - 1, traces.moments[0].state)


def test_one_that_lives_and_says_nothing_is_silent() -> None:
    run = replace(RUN, seen=NOW - 60)
    assert lives(RunEvidence(runs=[run], moments=[moment("r1", NOW - 42)], runners=[RUNNER])) == [
        ("foo", "r1", Life.SILENT)
    ]


def test_one_that_is_stopped_is_told_so(tmp_path: Path) -> None:
    folder = tmp_path / str(os.getpid())
    folder.mkdir()
    (folder / "stat").write_text(f"{os.getpid()} (a (strange) name) T 1 2 3")
    traces = RunEvidence(runs=[RUN], moments=[moment("r1", NOW - 42)], runners=[RUNNER])
    [found] = sightings(traces, NOW, proc=tmp_path)
    assert found.life is Life.STOPPED
    (folder / "stat").write_text(f"{os.getpid()} (T) S 1 2 3")
    assert not is_stopped(os.getpid(), tmp_path)
    assert not is_stopped(1, tmp_path)


def test_one_of_another_machine_cannot_be_looked_for() -> None:
    run = replace(RUN, holder="elsewhere.1.2_77_r1")
    assert lives(RunEvidence(runs=[run])) == [("foo", "r1", Life.ELSEWHERE)]


def test_one_that_ended_is_told_only_when_it_is_asked_for() -> None:
    traces = RunEvidence(runs=[replace(RUN, ended=NOW - 10)], moments=[moment("r1", NOW - 10)])
    assert lives(traces) == []
    [found] = sightings(traces, NOW, controller="foo")
    assert (found.life, found.seen) == (Life.ENDED, NOW - 10)


def test_a_later_run_takes_up_what_a_killed_one_left() -> None:
    killed = replace(RUN, id="r0", began=NOW - 900)
    elsewhere = replace(RUN, id="r00", began=NOW - 950, namespace="other")
    traces = RunEvidence(runs=[RUN, killed, elsewhere], runners=[RUNNER])
    assert lives(traces) == [("foo", "r1", Life.RUNNING), ("foo", "r00", Life.GONE)]
    whole = RunEvidence(runs=[replace(RUN, namespace="", ended=NOW - 5), killed, elsewhere])
    assert lives(whole) == [], "a run over all namespaces took up both, and ended well"


def test_one_that_does_not_record_is_known_by_its_lock() -> None:
    [found] = sightings(RunEvidence(runners=[RUNNER]), NOW)
    assert (found.controller, found.pid, found.recorded, found.state) == ("foo", os.getpid(), False, None)


def test_a_controller_is_named_by_its_name_or_by_the_word_it_was_run_with() -> None:
    traces = RunEvidence(runs=[replace(RUN, controllers=(FOO, MINE))])
    assert [one[0] for one in lives(traces)] == ["foo", "mine"]
    for word in ("mine", "./mine.py"):
        assert [one[0] for one in lives(traces, controller=word)] == ["mine"]
    assert lives(traces, controller="bar") == []
