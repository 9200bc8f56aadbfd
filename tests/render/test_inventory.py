"""What a recording holds, at 80 and 120 columns, in colour, in ASCII and through a pipe; compared whole."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

from kubectl_ctrl.history.inventory import Amount, Filled, Inventory
from kubectl_ctrl.model.record import Cluster, Played
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.render.inventory import inventory_json, run_json, run_lines, runs_table
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.value import replace
from tests.history.made import FOO, NOON, RUN
from tests.render.test_schemas import check

GOLDEN = Path(__file__).parent / "golden"
STYLES = {
    "80": Style(width=80, zone=UTC),
    "120": Style(width=120, zone=UTC),
    "color": Style(width=120, zone=UTC, color=True),
    "ascii": Style(width=80, zone=UTC, unicode=False),
    "pipe": Style(zone=UTC, full_times=True),
}
MINE = Played(
    name="night-shift",
    word="./mine.py",
    code="/home/jane/controllers/mine.py",
    settings=(("annotation_prefix", "night.example.com/"),),
    primaries=(DEPLOYMENTS,),
    manager="kubectl-ctrl-night-shift",
)
OLD = replace(RUN, id="r01d", cluster="3f2a77b0-9d1c", began=NOON - 90_000, seen=NOON - 80_000, ended=NOON - 80_000)
DIED = replace(
    RUN,
    id="rdea",
    cluster="c2",
    context="kind-a-cluster-with-a-name-that-is-longer-than-most-names-of-clusters-are",
    controllers=(FOO, MINE),
    began=NOON - 900,
    seen=NOON - 600,
    gaps=12,
)
LIVE = replace(RUN, cluster="8c41aa02-77aa", began=NOON - 60, seen=NOON, namespace="", labels="tier=web")


def amount(controller: str, attempts: int, failures: int = 0, unfinished: int = 0) -> Amount:
    return Amount(
        controller=controller,
        attempts=attempts,
        failures=failures,
        unfinished=unfinished,
        writes=attempts * 2,
        first=NOON - 900,
        last=NOON - 30,
    )


def cluster(key: str, context: str) -> Cluster:
    return Cluster(key=key, servers=(("https://127.0.0.1:6443", "ca1"),), contexts=(context,), seen=NOON)


FOUND = Inventory(
    path="/home/jane/.local/state/kubectl-ctrl/history.db",
    size=12_345_678,
    clusters=(
        cluster(LIVE.cluster, LIVE.context),
        cluster(DIED.cluster, DIED.context),
        cluster(OLD.cluster, OLD.context),
    ),
    runs=(
        Filled(run=LIVE, amounts=(amount("foo", 12, unfinished=1),), over=False),
        Filled(run=DIED, amounts=(amount("foo", 1203, 7), amount("night-shift", 88, 0, 2)), over=True),
        Filled(run=OLD, over=True),
    ),
    now=NOON,
)


@pytest.mark.parametrize("name", STYLES)
def test_the_list(name: str) -> None:
    told = runs_table(FOUND, STYLES[name])
    assert told + "\n" == (GOLDEN / f"record-{name}.txt").read_text(encoding="utf-8")


def test_the_wide_list() -> None:
    told = runs_table(FOUND, STYLES["pipe"], wide=True)
    assert told + "\n" == (GOLDEN / "record-wide.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", STYLES)
def test_one_run(name: str) -> None:
    told = "\n".join(run_lines(FOUND.runs[1], FOUND, STYLES[name]))
    assert told + "\n" == (GOLDEN / f"record-run-{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["80", "120", "ascii"])
def test_nothing_is_wider_than_the_terminal(name: str) -> None:
    style = STYLES[name]
    lines = [
        *runs_table(FOUND, style).split("\n"),
        *(line for one in FOUND.runs for line in run_lines(one, FOUND, style)),
    ]
    assert style.width is not None
    assert max(map(len, lines)) <= style.width


def test_the_documents_are_what_their_schemas_say() -> None:
    check("recording.v1", inventory_json(FOUND))
    check("recording.v1", inventory_json(replace(FOUND, runs=(), clusters=())))
    for one in FOUND.runs:
        check("run.v1", run_json(one, FOUND))
