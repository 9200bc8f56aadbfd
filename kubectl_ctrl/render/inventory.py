"""The runs in a recording, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kubectl_ctrl.history.inventory import ControllerNumbers, Inventory, RunNumbers
from kubectl_ctrl.model.record import RecordedCluster, RecordedController
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.attempt_json import cluster_fields, stamp, time_json
from kubectl_ctrl.render.style import Style, moment_text, painted
from kubectl_ctrl.text import Text, counted, cut, escaped, table
from kubectl_ctrl.value import replace

LIST_SCHEMA = "kubectl-ctrl.recording/v1"
RUN_SCHEMA = "kubectl-ctrl.run/v1"

_HEADER = ("RUN", "CLUSTER", "CONTROLLERS", "BEGAN", "STATE", "ATTEMPTS", "ERRORS", "GAPS")
_WIDE = ("WRITES", "NAMESPACE", "PROCESS", "VERSION", "CLUSTER-UID")
_CLUSTER, _CONTROLLERS = 1, 2
_KEY_CUT = 8
# From this width on, STATE has the time at which a run ended.
_ROOMY = 110


def runs_table(found: Inventory, style: Style, *, wide: bool = False) -> Text:
    """A row for each run, the newest first."""
    names = {cluster.key: _cluster_name(cluster, found.clusters) for cluster in found.clusters}
    rows = [_cells(one, names[one.run.cluster], found.now, style, wide) for one in found.runs]
    header = [*_HEADER, *_WIDE] if wide else _HEADER
    if style.width is not None and not wide:
        rows = _narrowed(rows, style.width, style.mark)
    head, *lines = table(rows, header=header).split("\n")
    shown = []
    for line, one in zip(lines, found.runs, strict=True):
        color = "" if one.run.ended is not None else "31" if one.over else "32"
        shown.append(painted(cut(line, style.width, mark=style.mark), color, style))
    return Text("\n".join([cut(head, style.width, mark=style.mark), *shown]))


def _narrowed(rows: list[list[str]], width: int, mark: str) -> list[list[str]]:
    """Controllers and clusters are cut, so that the numbers behind them fit."""
    for column in (_CONTROLLERS, _CLUSTER):
        over = max(map(len, table(rows, header=_HEADER).split("\n"))) - width
        room = max((len(row[column]) for row in rows), default=0) - over
        if over > 0:
            least = max(room, len(_HEADER[column]))
            rows = [[*row[:column], cut(row[column], least, mark=mark), *row[column + 1 :]] for row in rows]
    return rows


def _cluster_name(cluster: RecordedCluster, clusters: Sequence[RecordedCluster]) -> str:
    """The name of its context, with the beginning of its UID if another cluster has the same name."""
    name = cluster.contexts[0] if cluster.contexts else cluster.servers[0][0]
    same = [one for one in clusters if name in (*one.contexts, *(server for server, _ in one.servers))]
    name = f"{name} ({cluster.key[:_KEY_CUT]})" if len(same) > 1 else name
    return name if cluster.ended is None else f"{name}, deleted"


def _cells(one: RunNumbers, cluster: str, now: float, style: Style, wide: bool) -> list[str]:
    run = one.run
    narrow = style.width is not None and style.width < _ROOMY
    began, state = moment_text(run.began, now, style), _state(one, now, style)
    if narrow:
        # The date of another day, and the first word of the state.
        began, state = began.partition(" ")[0], state.partition(" ")[0].rstrip(",")
    cells = [
        run.id,
        cluster,
        ",".join(played.name for played in run.controllers),
        began,
        state,
        str(one.attempts),
        str(one.failures),
        str(run.gaps),
    ]
    if wide:
        writes = sum(amount.writes for amount in one.amounts)
        process = f"{run.pid}@{run.host}"
        cells += [str(writes), run.namespace or "(all)", process, run.program, run.cluster]
    return list(map(escaped, cells))


def _state(one: RunNumbers, now: float, style: Style) -> str:
    if one.run.ended is not None:
        return f"ended {moment_text(one.run.ended, now, style)}"
    return f"died, last seen {moment_text(one.run.seen, now, style)}" if one.over else "running"


def run_lines(one: RunNumbers, found: Inventory, style: Style) -> list[str]:
    facts = list(_facts(one, found, style))
    width = max(len(name) for name, _ in facts) + 3
    lines = [escaped(f"{name:<{width}}{text}") for name, text in facts]
    amounts = {amount.controller: amount for amount in one.amounts}
    header = ("CONTROLLER", "ATTEMPTS", "ERRORS", "UNFINISHED", "WRITES", "LAST", "FOR")
    rows = [_played_cells(played, amounts.get(played.name), found.now, style) for played in one.run.controllers]
    lines += ["", *table(rows, header=header).split("\n")]
    return [cut(line, style.width, mark=style.mark) for line in lines]


def _facts(one: RunNumbers, found: Inventory, style: Style) -> Iterator[tuple[str, str]]:
    run = one.run
    cluster = next(cluster for cluster in found.clusters if cluster.key == run.cluster)
    yield "Run", run.id
    yield "Cluster", _cluster_name(replace(cluster, ended=None), ())
    if cluster.ended is not None:
        yield "Deleted", f"{moment_text(cluster.ended, found.now, style)}, cluster {cluster.name} ({cluster.provider})"
    yield "Cluster UID", run.cluster
    yield "Server", run.server
    yield "Namespace", run.namespace or "all"
    if run.labels:
        yield "Selector", run.labels
    yield "Process", f"{run.pid} on {run.host}, kubectl-ctrl {run.program}"
    yield "Began", moment_text(run.began, found.now, style)
    yield "State", _state(one, found.now, style)
    yield "Gaps", f"{counted(run.gaps, 'row')} lost" if run.gaps else "none"
    for played in run.controllers:
        if played.code:
            yield "Code", f"{played.name}: {played.code}"
        for name, value in played.settings:
            yield "Setting", f"{played.name}: --{name.replace('_', '-')}={value}"


def _played_cells(played: RecordedController, amount: ControllerNumbers | None, now: float, style: Style) -> list[str]:
    primaries = ",".join(one.full_name for one in played.primaries)
    if amount is None:
        return [played.name, "0", "0", "0", "0", "-", primaries]
    counts = (amount.attempts, amount.failures, amount.unfinished, amount.writes)
    return [played.name, *map(str, counts), moment_text(amount.last, now, style), primaries]


# For machines.


def inventory_json(found: Inventory) -> dict[str, Any]:
    return {
        "schema": LIST_SCHEMA,
        "file": found.path,
        "bytes": found.size,
        "clusters": [_cluster_json(cluster) for cluster in found.clusters],
        "runs": [_run_json(one) for one in found.runs],
    }


def run_json(one: RunNumbers, found: Inventory) -> dict[str, Any]:
    cluster = next(cluster for cluster in found.clusters if cluster.key == one.run.cluster)
    return {"schema": RUN_SCHEMA, "file": found.path, "cluster": _cluster_json(cluster), **_run_json(one)}


def _cluster_json(cluster: RecordedCluster) -> dict[str, Any]:
    return {"uid": cluster.key, **cluster_fields(cluster)}


def _run_json(one: RunNumbers) -> dict[str, Any]:
    run = one.run
    amounts = {amount.controller: amount for amount in one.amounts}
    return {
        "run": run.id,
        "clusterUid": run.cluster,
        "context": run.context,
        "server": run.server,
        "namespace": run.namespace,
        "selector": run.labels,
        "process": {"pid": run.pid, "host": run.host, "version": run.program},
        "began": stamp(run.began),
        "lastSeen": stamp(run.seen),
        "ended": time_json(run.ended),
        "state": "ended" if run.ended is not None else "died" if one.over else "runs",
        "attempts": one.attempts,
        "errors": one.failures,
        "lostRows": run.gaps,
        "controllers": [_played_json(played, amounts.get(played.name)) for played in run.controllers],
    }


def _played_json(played: RecordedController, amount: ControllerNumbers | None) -> dict[str, Any]:
    def named(resources: tuple[Resource, ...]) -> list[str]:
        return [str(one) for one in resources]

    return {
        "name": played.name,
        "code": played.code,
        "settings": dict(played.settings),
        "for": named(played.primaries),
        "owns": named(played.owns),
        "watches": named(played.watches),
        "fieldManager": played.manager,
        "attempts": amount.attempts if amount else 0,
        "errors": amount.failures if amount else 0,
        "unfinished": amount.unfinished if amount else 0,
        "writes": amount.writes if amount else 0,
        "first": stamp(amount.first) if amount else None,
        "last": stamp(amount.last) if amount else None,
    }
