from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from kubectl_ctrl.model.record import Story
from kubectl_ctrl.render.trace.formats import export
from kubectl_ctrl.render.trace.links import links
from kubectl_ctrl.value import replace
from tests.render.stories import hostile, story

Event = dict[str, Any]


def events(shown: Story) -> list[Event]:
    document = json.loads("".join(export("perfetto", shown)))
    assert document["displayTimeUnit"] == "ms"
    found: list[Event] = document["traceEvents"]
    return found


def of(found: Iterable[Event], *phases: str) -> list[Event]:
    return [event for event in found if event["ph"] in phases]


STORIES = [story(60), story(600, objects=8), hostile()]


@pytest.mark.parametrize("shown", STORIES)
def test_slices_of_one_track_lie_within_each_other_or_apart(shown: Story) -> None:
    rows: dict[tuple[int, int], list[Event]] = {}
    for slice_ in of(events(shown), "X"):
        rows.setdefault((slice_["pid"], slice_["tid"]), []).append(slice_)
    assert rows
    for row in rows.values():
        open_until: list[int] = []
        for slice_ in sorted(row, key=lambda one: (one["ts"], -one["dur"])):
            assert slice_["dur"] >= 1
            while open_until and open_until[-1] <= slice_["ts"]:
                open_until.pop()
            assert not open_until or slice_["ts"] + slice_["dur"] <= open_until[-1]
            open_until.append(slice_["ts"] + slice_["dur"])


@pytest.mark.parametrize("shown", STORIES)
def test_no_attempts_overlap_on_a_track(shown: Story) -> None:
    rows: dict[int, list[Event]] = {}
    for slice_ in of(events(shown), "X"):
        if slice_["cat"].startswith("reconcile"):
            rows.setdefault(slice_["tid"], []).append(slice_)
    assert sum(map(len, rows.values())) == len(shown.attempts)
    for row in rows.values():
        for before, after in pairwise(sorted(row, key=lambda one: int(one["ts"]))):
            assert before["ts"] + before["dur"] <= after["ts"]


def test_every_arrow_ends_and_leads_from_a_cause_to_its_effect() -> None:
    shown = story(600, objects=8)
    found = events(shown)
    starts, ends = ({event["id"]: event for event in of(found, phase)} for phase in "sf")
    assert starts.keys() == ends.keys()
    assert len(starts) == len(links(shown.attempts)) > 100
    slices = {slice_["args"]["attempt"]: slice_ for slice_ in of(found, "X") if "attempt" in slice_["args"]}
    for number, link in enumerate(links(shown.attempts), 1):
        start, end = starts[number], ends[number]
        source, target = slices[link.source], slices[link.target]
        assert start["name"] == end["name"] == link.kind
        assert start["ts"] <= end["ts"] == target["ts"]
        assert source["ts"] <= start["ts"] < source["ts"] + source["dur"]
        assert (start["tid"], end["tid"], end["bp"]) == (source["tid"], target["tid"], "e")


def test_waits_are_pairs_that_end_where_the_attempt_begins() -> None:
    shown = story(60)
    found = events(shown)
    begins, ends = ({event["id"]: event for event in of(found, phase)} for phase in "be")
    starts = {slice_["args"]["attempt"]: slice_["ts"] for slice_ in of(found, "X") if "attempt" in slice_["args"]}
    assert begins.keys() == ends.keys()
    assert len(begins) == len(starts) == 60
    for id_, begin in begins.items():
        assert int(id_, 16) > 0
        assert begin["ts"] < ends[id_]["ts"] == starts[begin["args"]["attempt"]]


def test_processes_and_threads_have_names() -> None:
    found = events(story(600, objects=8))
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in of(found, "M") if "name" in event["args"]}
    assert names == {
        (1, 0): "r7f3 kind-ctrl (laptop, pid 4121)",
        (1, 1): "foo worker 1",
        (1, 2): "foo worker 2",
    }
    assert {(event["pid"], event["tid"]) for event in of(found, "X")} == {(1, 1), (1, 2)}


def test_a_slice_has_its_causes_and_outcome() -> None:
    slice_ = next(one for one in of(events(story(60)), "X") if one["args"].get("attempt") == "r7f3-2")
    assert slice_["name"] == "web 2"
    assert slice_["args"]["why"] == "spec.replicas 3→4 by kubectl-edit"
    assert slice_["args"]["outcome"] == '24ms FAILED, retry in 1s: deployments.apps "web" is forbidden'


def test_calls_made_at_once_get_threads_of_their_own() -> None:
    shown = story(60)
    attempt = next(one for one in shown.attempts if len(one.calls) == 2)
    first, second = attempt.calls
    twin = replace(second, call=replace(second.call, started=first.call.started + first.call.took / 2))
    found = events(replace(shown, attempts=(replace(attempt, calls=(first, twin)),)))
    tids = [slice_["tid"] for slice_ in of(found, "X")]
    assert len(tids) == 3
    assert len(set(tids)) == 2
    beside = [event["tid"] for event in of(found, "M") if event["args"].get("name") == "concurrent calls"]
    assert beside == [max(tids)]
    order = {event["tid"]: event["args"]["sort_index"] for event in of(found, "M") if "sort_index" in event["args"]}
    assert order[beside[0]] == order[1] + 1


def test_an_empty_recording_is_a_valid_trace() -> None:
    assert events(replace(story(3), attempts=())) == []
