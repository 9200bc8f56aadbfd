"""`doctor --fix`: removes leftovers, and reports one line for each.

Removals that destroy something are only listed without --yes, and those that change a cluster pass the guard. A removal
that fails does not prevent the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.doctor import recordings
from kubectl_ctrl.doctor.checks import PATIENCE, CheckInput, split
from kubectl_ctrl.doctor.diagnosis import Diagnosis, Repair, RepairOutcome, worst
from kubectl_ctrl.doctor.leftovers import Leftover, cluster_leftovers, local_leftovers
from kubectl_ctrl.errors import CtrlError, Refused
from kubectl_ctrl.target import guard
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.text import counted
from kubectl_ctrl.value import Value


class FixResult(Value, kw_only=True):
    diagnosis: Diagnosis
    refused: Refused | None = None
    code: int = 0


async def fix_all(app: App, given: ParsedCommandLine, bench: CheckInput) -> FixResult:
    found = [*await local_leftovers(bench), *await _on_cluster(app, bench), *await recordings.left(bench)]
    stopped = await _guarded(app, given, bench) if any(one.remote and one.mend for one in found) else None
    repairs: list[Repair] = []
    codes: list[int] = []
    for one in found:
        if one.remote and one.mend and stopped is not None:
            advice, command = split(stopped.next_step)
            repairs.append(Repair(outcome=RepairOutcome.REFUSED, text=one.text, advice=advice, command=command))
        else:
            repair, code = await _fix(one, yes=given["yes"])
            repairs.append(repair)
            codes.append(code)
    diagnosis = Diagnosis(at=bench.clock.now(), repairs=tuple(repairs))
    return FixResult(diagnosis=diagnosis, refused=stopped or _unconfirmed(given, repairs), code=worst(codes))


async def _on_cluster(app: App, bench: CheckInput) -> Sequence[Leftover]:
    try:
        there = await bench.reach.reached()
        async with bench.clock.timeout(PATIENCE):
            found = await cluster_leftovers(bench, there)
        for what in found.hidden:
            app.narrate(f"{what} cannot be checked with these credentials.")
        return found.left
    except CtrlError as error:
        why = error.message
    except TimeoutError:
        why = f"it did not answer within {PATIENCE:g} s."
    app.narrate(app.hide(f"Leftovers on the cluster are unknown: {why}"))
    return ()


async def _guarded(app: App, given: ParsedCommandLine, bench: CheckInput) -> Refused | None:
    """The guard's error if that cluster may not be changed."""
    resolved = (await bench.reach.reached()).resolved
    try:
        guard.check(
            CommandEffect.WRITE,
            resolved,
            allow=given["allow_context"],
            standing=guard.standing_list(app.user.config_file),
            registry=app.registry,
        )
    except Refused as refused:
        allowed = f"--allow-context={guard.to_allow(resolved)}"
        refused.next_step = given.again("doctor", "--fix", allowed)
        return refused
    return None


async def _fix(one: Leftover, *, yes: bool) -> tuple[Repair, int]:
    """The repair, and the exit code of a failure."""
    if one.mend is None:
        return Repair(outcome=RepairOutcome.BY_HAND, text=one.text, advice=one.advice, command=one.command), 0
    if one.destroys and not yes:
        return Repair(outcome=RepairOutcome.LISTED, text=one.text), 0
    try:
        done = await one.mend()
    except (CtrlError, OSError) as error:
        code = error.exit_code if isinstance(error, CtrlError) else 1
        text = f"{one.text}; this could not be fixed: {str(error).rstrip('.')}"
        return Repair(outcome=RepairOutcome.FAILED, text=text, command=one.command), code
    return Repair(outcome=RepairOutcome.DONE, text=f"{one.text}: {done}"), 0


def _unconfirmed(given: ParsedCommandLine, repairs: Sequence[Repair]) -> Refused | None:
    waiting = sum(repair.outcome is RepairOutcome.LISTED for repair in repairs)
    if not waiting:
        return None
    return Refused(
        f"{counted(waiting, 'leftover')} listed but not deleted: that needs --yes.",
        next_step=given.again("doctor", "--fix", "--yes"),
    )
