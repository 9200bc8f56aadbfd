"""`record prune`: lists the recordings to delete, and deletes them with --yes."""

from __future__ import annotations

from kubectl_ctrl.cli.verbs.record.main import RecordArguments, run_of
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import Refused, UsageError
from kubectl_ctrl.history.inventory import Inventory
from kubectl_ctrl.history.pruning import EVERYTHING, PruneSelection, file_size
from kubectl_ctrl.history.pruning import prune as removed
from kubectl_ctrl.render.inventory import runs_table
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.text import counted, size_text
from kubectl_ctrl.value import Value, replace


class _Selection(Value, kw_only=True):
    """The recordings to delete."""

    found: Inventory  # the runs, with the attempts to delete
    whole: tuple[str, ...]  # ids of runs that are deleted completely
    alive: tuple[str, ...]  # ids of active runs, which are kept

    @property
    def attempts(self) -> int:
        return sum(one.attempts for one in self.found.runs)


def prune(asked: RecordArguments) -> int:
    asked.no_more_words()
    given, now = asked.given, SystemClock().now()
    if given["older_than"] is None and not (given["run"] or given["all"] or asked.cluster):
        raise UsageError(
            "record prune needs a selection of runs.",
            next_step="add --older-than 24h, --run RUN, --cluster NAME or --all",
        )
    before = EVERYTHING if given["older_than"] is None else now - given["older_than"]
    selection = _selection(asked, before, now)
    for name in selection.alive:
        asked.app.narrate(f"Run {name} is active and is kept.")
    if not selection.found.runs:
        asked.app.narrate("Nothing to delete.")
        return 0
    if not given["yes"]:
        asked.app.answer(runs_table(selection.found, asked.style))
        raise Refused(
            f"This would delete {counted(selection.attempts, 'attempt')} of "
            f"{counted(len(selection.found.runs), 'run')}, and {counted(len(selection.whole), 'run')} completely.",
            next_step=given.again("record", "--yes"),
        )
    names = tuple(one.run.id for one in selection.found.runs)
    deleted = removed(asked.file, PruneSelection(before=before, newest=False, runs=names), now)
    asked.app.narrate(
        f"Deleted {counted(deleted.attempts, 'attempt')} and {counted(deleted.runs, 'run')}. "
        f"Size of {asked.file}: {size_text(deleted.size_after)}, before {size_text(deleted.size_before)}."
    )
    return 0


def _selection(asked: RecordArguments, before: float, now: float) -> _Selection:
    with opened(asked.file, now) as recording:
        cluster, clusters = asked.cluster_in(recording), recording.clusters()
        found = Inventory(
            path=str(asked.file),
            size=file_size(asked.file),
            clusters=clusters,
            runs=recording.filled(cluster=cluster, before=before),
            now=now,
        )
        whole = {one.run.id: one.attempts for one in recording.filled(cluster=cluster)}
    meant = (run_of(found, asked.given["run"]),) if asked.given["run"] else found.runs
    # A run without attempts is deleted by its own age.
    losing = tuple(
        one for one in meant if one.over and (one.attempts > 0 or (whole[one.run.id] == 0 and one.run.seen < before))
    )
    return _Selection(
        found=replace(found, runs=losing),
        whole=tuple(one.run.id for one in losing if one.attempts == whole[one.run.id]),
        alive=tuple(one.run.id for one in meant if not one.over and (one.attempts or before == EVERYTHING)),
    )
