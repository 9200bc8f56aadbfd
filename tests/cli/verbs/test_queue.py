"""`queue` on what runs left behind, without any cluster: which runs it tells of, and what it says of none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl.cli.main import main
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.history.writer import Recorder
from kubectl_ctrl.model.attempt import ControllerState, Depth, WaitingRequest
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.record import RecordedRun
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.runners import Runner, only_runner
from kubectl_ctrl.value import replace
from tests.history.made import RUN, recording

Captured = pytest.CaptureFixture[str]


def now() -> float:
    return SystemClock().now()


def stands(*entries: WaitingRequest) -> ControllerState:
    depth = Depth(ready=len(entries))
    return ControllerState(
        controller="foo", at=now(), leading=True, synced=True, entries=entries, workers=8, depth=depth
    )


def ready(name: str) -> WaitingRequest:
    return WaitingRequest(request=Request("default", name), state="ready", since=now() - 3)


def run_of(name: str) -> RecordedRun:
    return replace(RUN, id=name, pid=os.getpid(), holder=identity(name), began=now() - 60)


def runner_of(run: RecordedRun) -> Runner:
    return Runner(
        cluster=run.cluster,
        controller="foo",
        scope=run.namespace,
        pid=run.pid,
        run=run.id,
        controllers=("foo",),
        context=run.context,
        since=run.began,
        holder=run.holder,
    )


def until_told(capsys: Captured) -> dict[str, Any]:
    """The one controller, once what its recorder was told has come through."""
    capsys.readouterr()
    end = now() + 120
    while now() < end:
        assert main(["queue", "-o", "json"]) == 0
        found = json.loads(capsys.readouterr().out)["controllers"]
        if found and "entries" in found[0]:
            told: dict[str, Any] = found[0]
            return told
    raise AssertionError("it was not told in time")


def test_one_that_ended_is_told_only_by_its_name(state: Path, capsys: Captured) -> None:
    recording(state, stands(ready("web")))
    assert main(["queue"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, "No controller runs from this machine on cluster kind-dev" in shown.err) == ("", True)
    assert main(["queue", "foo"]) == 0
    assert ", ended " in capsys.readouterr().out
    assert main(["queue", "bar"]) == 0
    assert "bar does not run" in capsys.readouterr().err


def test_without_any_recording_nothing_runs_and_that_is_no_error(state: Path, capsys: Captured) -> None:
    assert main(["queue"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "No controller runs from this machine on any cluster.\n")
    assert main(["queue", "--from", str(state / "none.db")]) == 4


def test_the_forms(state: Path, capsys: Captured) -> None:
    path = recording(state, stands(ready("web")))
    with_file = ["--from", str(path)]
    assert main(["queue", "foo", "-o", "yaml", *with_file]) == 0
    [found] = yaml.safe_load(capsys.readouterr().out)["controllers"]
    assert [entry["name"] for entry in found["entries"]] == ["web"]
    assert main(["queue", "foo", "-o", "wide", *with_file]) == 0
    assert main(["queue", "-o", "dot"]) == 2
    assert main(["queue", "foo", "bar"]) == 2


def test_one_whose_lock_is_held_runs_and_one_that_only_lost_it_is_gone(state: Path, capsys: Captured) -> None:
    run = run_of("r7f3")
    recorder = Recorder(state / "history.db", run, clock=SystemClock())
    try:
        with only_runner(state, runner_of(run)):
            recorder.observe(stands(ready("web")))
            found = until_told(capsys)
            assert (found["life"], found["run"], found["pid"]) == ("running", "r7f3", os.getpid())
        assert until_told(capsys)["life"] == "gone"
        assert main(["queue"]) == 0
        assert f"process {os.getpid()} is gone" in capsys.readouterr().out
    finally:
        recorder.close()
    assert main(["queue"]) == 0
    assert capsys.readouterr().out == ""


def test_what_runs_on_one_of_several_clusters_is_not_denied(state: Path, capsys: Captured) -> None:
    other = replace(RUN, id="r2", cluster="c2", context="kind-other", server="https://127.0.0.1:6444")
    for run in (RUN, other):
        recording(state, run=run)
    with only_runner(state, runner_of(run_of("r7f3"))):
        assert main(["queue"]) == 4
        shown = capsys.readouterr().err
        assert "The recorded cluster is ambiguous" in shown
        assert "next: add --recorded-cluster kind-" in shown
    assert main(["queue"]) == 0
    assert capsys.readouterr().err == "No controller runs from this machine on any cluster.\n"


def test_what_runs_and_records_nothing_is_shown_where_no_cluster_is_meant(state: Path, capsys: Captured) -> None:
    with only_runner(state, runner_of(run_of("r7f3"))):
        assert main(["queue"]) == 0
        assert "it runs with --record off, so its queue is unknown" in capsys.readouterr().out
