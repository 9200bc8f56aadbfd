"""The runs of a recording, and one run in detail."""

from __future__ import annotations

from functools import partial

from kubectl_ctrl.history.inventory import ControllerNumbers, Inventory, RunNumbers
from kubectl_ctrl.model.record import RecordedCluster, RecordedController
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.render.inventory import run_lines, runs_table
from kubectl_ctrl.value import replace
from tests.golden import Golden
from tests.history.made import FOO, NOON, RUN
from tests.render.layouts import STYLES, in_every_style, sections

MINE = RecordedController(
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


def amount(controller: str, attempts: int, failures: int = 0, unfinished: int = 0) -> ControllerNumbers:
    return ControllerNumbers(
        controller=controller,
        attempts=attempts,
        failures=failures,
        unfinished=unfinished,
        writes=attempts * 2,
        first=NOON - 900,
        last=NOON - 30,
    )


def cluster(key: str, context: str) -> RecordedCluster:
    return RecordedCluster(key=key, servers=(("https://127.0.0.1:6443", "ca1"),), contexts=(context,), seen=NOON)


FOUND = Inventory(
    path="/home/jane/.local/state/kubectl-ctrl/history.db",
    size=12_345_678,
    clusters=(
        cluster(LIVE.cluster, LIVE.context),
        cluster(DIED.cluster, DIED.context),
        cluster(OLD.cluster, OLD.context),
    ),
    runs=(
        RunNumbers(run=LIVE, amounts=(amount("foo", 12, unfinished=1),), over=False),
        RunNumbers(run=DIED, amounts=(amount("foo", 1203, 7), amount("night-shift", 88, 0, 2)), over=True),
        RunNumbers(run=OLD, over=True),
    ),
    now=NOON,
)


def test_the_list(golden: Golden) -> None:
    wide = runs_table(FOUND, STYLES["pipe"], wide=True).splitlines()
    golden("record", in_every_style(lambda style: runs_table(FOUND, style).splitlines()) + sections({"wide": wide}))


def test_one_run(golden: Golden) -> None:
    golden("record-run", in_every_style(partial(run_lines, FOUND.runs[1], FOUND)))
