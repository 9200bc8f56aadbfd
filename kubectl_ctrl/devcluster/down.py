"""The steps of `down`: nothing is left of a managed cluster, and of what runs on it, but the recordings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters import current_context, lifecycle, names
from kubectl_ctrl.clusters.providers import providers
from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.devcluster.steps import Steps, waiting
from kubectl_ctrl.errors import ClusterError, CtrlError, Refused
from kubectl_ctrl.runs import background
from kubectl_ctrl.story import lookup
from kubectl_ctrl.text import counted
from kubectl_ctrl.user import User

STEPS = ("controllers", "use", "cluster", "recording", "files")

# Seconds for controllers to finish running reconciles; the objects they work on are about to be deleted anyway.
_DRAIN = 5.0


async def all_deleted(user: User, clusters: Sequence[str], clock: Clock, steps: Steps) -> None:
    """Delete these clusters one after the other; one that cannot be deleted does not keep the others."""
    problems: dict[str, CtrlError] = {}
    for name in clusters:
        try:
            if not await deleted(user, name, clock, steps):
                await _check_foreign(user, name, clock)
                steps.say(f"there is no managed cluster {name}")
        except CtrlError as problem:
            problems[name] = problem
    if problems:
        raise _summed(problems, len(clusters))


async def deleted(user: User, name: str, clock: Clock, steps: Steps) -> bool:
    """Delete a managed cluster, however complete it is; False when there is none of that name."""
    registry = Registry.of(user)
    if not names.is_there(registry, name):
        return False
    async with lifecycle.lock(registry, name, clock, waiting(registry, name, steps)):
        if not registry.place(name).is_dir():
            return False  # another process deleted it while we waited, or only a lock file was left
        entry = registry.find(name)
        names.check_kubeconfig(user, entry)
        with steps.step("controllers", "controllers") as step:
            stopped = await background.ended(user, entry or registry.unread(name), _DRAIN, clock, step.note)
            step.text = f"{counted(len(stopped), 'controller')} stopped" if stopped else "no controller was running"
        if entry is not None and entry.used:
            with steps.step("use", "your kubeconfig") as step:
                step.text = await current_context.undo(user, entry, registry)
        else:
            steps.skip("use", "--use was not asked for")
        with steps.step("cluster", f"cluster {name}" + (f" ({entry.provider})" if entry else "")) as step:
            await lifecycle.delete(registry, providers(names.machine(user, clock)), name, note=step.note)
            step.text += " deleted"
        if entry is not None:
            with steps.step("recording", "note the deletion in the recording") as step:
                # A recording that cannot be written is no reason to keep a cluster.
                problem = lookup.cluster_deleted(user, entry, clock.now())
                step.text, step.doubtful = problem or "deletion noted in the recording", bool(problem)
        with steps.step("files", "files") as step:
            registry.remove(name)
            step.text = "files deleted; recordings are kept"
    return True


async def _check_foreign(user: User, name: str, clock: Clock) -> None:
    """Raise where a cluster of that name exists that was not created by us: it is kept."""
    for provider in providers(names.machine(user, clock)).values():
        owner = ""
        with suppress(CtrlError):  # a provider that cannot be asked knows of none
            owner = await provider.foreign(name)
        if owner:
            raise Refused(
                f"Cluster {name!r} was not created by kubectl ctrl: {owner}.",
                next_step="delete it with the program that created it",
            )


def _summed(problems: Mapping[str, CtrlError], count: int) -> CtrlError:
    first = next(iter(problems.values()))
    if count == 1:
        return first
    return ClusterError(
        f"{len(problems)} of {count} clusters could not be deleted: {', '.join(problems)}.",
        tried="; ".join(problem.message for problem in problems.values()),
        next_step=f"delete each by its name to see how to solve its problem: {names.down(next(iter(problems)))}",
    )
