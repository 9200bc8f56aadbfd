"""What `record prune` does: says which runs lose what, and takes it away when that is confirmed."""

from __future__ import annotations

from kubectl_ctrl.cli.verbs.record.main import Asked, run_of
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import Refused, UsageError
from kubectl_ctrl.history.inventory import Filled, Inventory
from kubectl_ctrl.history.pruning import EVERYTHING, Doomed, file_size
from kubectl_ctrl.history.pruning import prune as removed
from kubectl_ctrl.render.inventory import runs_table
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.text import counted, size_text
from kubectl_ctrl.value import Value, replace


class _Going(Value, kw_only=True):
    """What would go."""

    found: Inventory  # its runs with what each would lose
    whole: tuple[str, ...]  # names of those that would go themselves
    alive: tuple[str, ...]  # that would be meant, and go on

    @property
    def attempts(self) -> int:
        return sum(one.attempts for one in self.found.runs)


def prune(asked: Asked) -> int:
    """The body of the action."""
    asked.no_more_words()
    given, now = asked.given, SystemClock().now()
    if given["older_than"] is None and not (given["run"] or given["all"] or asked.cluster):
        raise UsageError(
            "record prune is not told what is to go.",
            next_step="add --older-than 24h, --run RUN, --cluster NAME or --all",
        )
    before = EVERYTHING if given["older_than"] is None else now - given["older_than"]
    going = _going(asked, before, now)
    for name in going.alive:
        asked.app.narrate(f"Run {name} goes on, so it is left as it is.")
    if not going.found.runs:
        asked.app.narrate("There is nothing to take away.")
        return 0
    if not given["yes"]:
        asked.app.answer(runs_table(going.found, asked.style))
        raise Refused(
            f"{counted(going.attempts, 'attempt')} of {counted(len(going.found.runs), 'run')} would be taken away; "
            f"{counted(len(going.whole), 'run')} would be gone.",
            next_step=given.again("record", "--yes"),
        )
    names = tuple(one.run.id for one in going.found.runs)
    gone = removed(asked.file, Doomed(before=before, newest=False, runs=names), now)
    asked.app.narrate(
        f"Gone: {counted(gone.attempts, 'attempt')}, {counted(gone.runs, 'run')}. "
        f"{asked.file} had {size_text(gone.size_before)} and has {size_text(gone.size_after)}."
    )
    return 0


def _going(asked: Asked, before: float, now: float) -> _Going:
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
    losing = tuple(one for one in meant if one.over and _loses(one, whole, before))
    return _Going(
        found=replace(found, runs=losing),
        whole=tuple(one.run.id for one in losing if one.attempts == whole[one.run.id]),
        alive=tuple(one.run.id for one in meant if not one.over and (one.attempts or before == EVERYTHING)),
    )


def _loses(one: Filled, whole: dict[str, int], before: float) -> bool:
    """A run that never did anything goes when it is old enough itself."""
    return one.attempts > 0 or (whole[one.run.id] == 0 and one.run.seen < before)
