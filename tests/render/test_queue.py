"""The output of `queue`."""

from __future__ import annotations

from functools import partial

import pytest

from kubectl_ctrl.model.attempt import ControllerState, Depth, NamespaceQueue, WaitingRequest
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.life import Life, Sighting
from kubectl_ctrl.render.queue import QueueSnapshot, queue_json, queue_lines
from kubectl_ctrl.value import replace
from tests.golden import Golden
from tests.render.layouts import STYLES, in_every_style
from tests.render.samples import NOON


def waiting(name: str, state: str, since: float, **more: object) -> WaitingRequest:
    return replace(WaitingRequest(request=Request("default", name), state=state, since=NOON - since), **more)  # type: ignore[arg-type]


ENTRIES = (
    waiting("web", "running", 1.2, failures=1, causes=2, attempt="r7f3-12"),
    waiting("late", "ready", 12.0, causes=4),
    waiting("a-name-that-is-rather-long-for-a-terminal-of-80-columns", "ready", 11.0, causes=1),
    waiting("bad", "backoff", 3.0, due=NOON + 4.1, failures=5, causes=1),
    waiting("cron", "timer", 600.0, due=NOON + 86400.0, causes=1),
)
STATE = ControllerState(
    controller="foo",
    at=NOON - 0.4,
    leading=True,
    synced=True,
    entries=ENTRIES,
    workers=8,
    depth=Depth(ready=9792, running=1, backoff=1, timers=1),
    crowds=(
        NamespaceQueue(namespace="team-a", ready=9700, since=NOON - 190),
        NamespaceQueue(namespace="default", ready=80, since=NOON - 12),
        *(NamespaceQueue(namespace=f"team-{letter}", ready=2, since=NOON - 5) for letter in "bcdef"),
    ),
    namespaces=8,
)
FOO = Sighting(
    controller="foo",
    run="r7f3",
    pid=4121,
    context="kind-ctrl",
    namespace="",
    began=NOON - 7200,
    life=Life.RUNNING,
    seen=NOON - 0.4,
    state=STATE,
    host="laptop",
)
IDLE = replace(STATE, entries=(), depth=Depth(), crowds=(), namespaces=0, at=NOON - 1)
LOST = ControllerState(
    controller="memcached",
    at=NOON - 100_000,
    leading=False,
    synced=False,
    entries=(waiting("web", "running", 100_007, attempt="r0aa-3"), waiting("x", "backoff", 100_009, due=NOON - 99_990)),
    message="memcacheds.cache.example.com is not installed; the run does not hold the Lease of memcached",
    workers=8,
    depth=Depth(running=1, backoff=1),
)
ALL = (
    FOO,
    replace(FOO, controller="scaler", namespace="default", state=IDLE),
    replace(
        FOO,
        controller="memcached",
        run="r0aa",
        pid=77,
        namespace="default",
        life=Life.GONE,
        seen=NOON - 100_000,
        state=LOST,
    ),
    replace(FOO, controller="mine", run="r0ab", pid=78, recorded=False, state=None),
    replace(FOO, controller="idle", run="r0ac", pid=79, life=Life.STOPPED, seen=NOON - 42, state=IDLE),
    replace(FOO, controller="busy", run="r0ad", pid=80, gaps=3, life=Life.SILENT, seen=NOON - 42, state=IDLE),
    replace(FOO, controller="away", run="r0ae", pid=81, life=Life.ELSEWHERE, seen=NOON - 3, state=None),
    replace(FOO, controller="over", run="r0af", pid=82, life=Life.ENDED, seen=NOON - 60, state=IDLE),
)


@pytest.mark.parametrize(("name", "wide"), [("queue", False), ("queue-wide", True)])
def test_the_layout(name: str, wide: bool, golden: Golden) -> None:
    golden(name, in_every_style(partial(queue_lines, QueueSnapshot(sightings=ALL, now=NOON, wide=wide))))


def test_text_of_a_cluster_cannot_control_the_terminal() -> None:
    evil = waiting("\x1b[2Jx", "ready", 1.0)
    state = replace(STATE, entries=(evil,), message="\x1b]0;x\x07")
    text = "\n".join(queue_lines(QueueSnapshot(sightings=[replace(FOO, state=state)], now=NOON), STYLES["120"]))
    assert "\x1b" not in text
    assert "\\x1b[2Jx" in text


def test_the_json_has_everything() -> None:
    document = queue_json(QueueSnapshot(sightings=ALL, now=NOON))
    assert document["schema"] == "kubectl-ctrl.queue/v1"
    foo, *_, over = document["controllers"]
    assert foo["depth"] == {"ready": 9792, "running": 1, "backoff": 1, "timers": 1}
    assert foo["workers"] == {"total": 8, "busy": 1}
    assert [entry["name"] for entry in foo["entries"]] == [entry.request.name for entry in ENTRIES]
    assert foo["entries"][3] == {
        "namespace": "default",
        "name": "bad",
        "state": "backoff",
        "since": "2026-01-01T11:59:57.000000+00:00",
        "due": "2026-01-01T12:00:04.100000+00:00",
        "failures": 5,
        "causes": 1,
        "attempt": "",
    }
    assert (over["life"], document["controllers"][3]["recorded"]) == ("ended", False)
    assert "entries" not in document["controllers"][3]
