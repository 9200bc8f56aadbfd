"""What `down` does: nothing is left of a cluster of ours, and of what ran on it, but the recording."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.interrupts import cancellable
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.cli.output.progress import Progress, stopping, waiting
from kubectl_ctrl.cli.parsing import new_cluster
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.clock import Clock, SystemClock
from kubectl_ctrl.clusters import current_context
from kubectl_ctrl.clusters import names as ours
from kubectl_ctrl.clusters.lifecycle import held, removed
from kubectl_ctrl.clusters.providers import providers
from kubectl_ctrl.clusters.registry import Entry
from kubectl_ctrl.errors import ClusterError, CtrlError, Refused, UsageError
from kubectl_ctrl.runs import background
from kubectl_ctrl.story import lookup
from kubectl_ctrl.text import counted

STEPS = ("controllers", "use", "cluster", "recording", "files")

# Controllers may take so long to finish what is under way; what they work on is going anyway.
_DRAIN = 5.0


def run(app: App, given: Given) -> int:
    """The body of the verb."""
    return down(app, given, given.arguments)


def down(app: App, given: Given, words: Sequence[str]) -> int:
    """Take away the cluster that the words name, the one that is meant, or all of them."""
    app.machine = given["progress"] == "json"
    names = _names(app, given, words)
    clock = SystemClock()
    progress = Progress.of(app, given, STEPS, clock)
    if not names:
        progress.say("there is no managed cluster")
    return _end(app, names, progress, clock)


def _names(app: App, given: Given, words: Sequence[str]) -> list[str]:
    if given["all"]:
        if words or any(flag.startswith("--name=") for flag in given.typed):
            raise UsageError("--all and a name exclude each other.", next_step="kubectl ctrl down --help")
        return sorted({*ours.names(app.book), *ours.locks(app.book)})
    name = new_cluster.named(given, words) or ours.only(app.book)
    return [name] if name else []


def _end(app: App, names: list[str], progress: Progress, clock: Clock) -> int:
    """Take these away, one after the other; the exit code."""

    async def work() -> None:
        problems: dict[str, CtrlError] = {}
        for name in names:
            try:
                if not await taken_down(app, name, progress, clock):
                    await _refuse_anothers(app, name, clock)
                    progress.say(f"there is no managed cluster {name}")
            except CtrlError as problem:
                problems[name] = problem
        if problems:
            raise _summed(problems, len(names))

    def left() -> None:
        for name in names:
            if ours.is_there(app.book, name):
                progress.say(ours.left(app.book, name))

    with logging_to(progress.say, form="text", verbosity=app.verbosity):
        code = asyncio.run(cancellable(work(), stopping=stopping(progress), forced=left))
    if code:
        left()
    return code


async def _refuse_anothers(app: App, name: str, clock: Clock) -> None:
    """Who wants a cluster gone that somebody else made is told that it stays."""
    for provider in providers(ours.machine(app.user, clock)).values():
        owner = ""
        with suppress(CtrlError):  # what cannot be asked knows of none
            owner = await provider.foreign(name)
        if owner:
            raise Refused(f"Cluster {name!r} is not ours: {owner}.", next_step="take it away with what made it")


def _summed(problems: Mapping[str, CtrlError], count: int) -> CtrlError:
    """One error for all that could not be taken away."""
    first = next(iter(problems.values()))
    if count == 1:
        return first
    return ClusterError(
        f"{len(problems)} of {count} clusters are not taken away: {', '.join(problems)}.",
        tried="; ".join(problem.message for problem in problems.values()),
        next_step=f"{ours.down(next(iter(problems)))} says what to do about it; so it does for each",
    )


async def taken_down(app: App, name: str, progress: Progress, clock: Clock) -> bool:
    """Everything of the cluster of that name; False when the book has none. Whatever ended an earlier try is fine."""
    if not ours.is_there(app.book, name):
        return False
    async with held(app.book, name, clock, waiting(app.book, name, progress)):
        if not app.book.place(name).is_dir():
            return False  # whom we waited for took it away, or there was a lock alone
        entry = app.book.find(name)
        ours.check_kubeconfig(app.user, entry)
        await _left(app, entry or app.book.unread(name), progress, clock)
        with progress.step("cluster", f"cluster {name}" + (f" ({entry.provider})" if entry else "")) as step:
            await removed(app.book, providers(ours.machine(app.user, clock)), name, note=step.note)
            step.text += " removed"
        if entry is not None:
            _tell(app, entry, progress, clock)
        with progress.step("files", "files") as step:
            app.book.remove(name)
            step.text = "files removed; what was recorded stays"
    return True


async def _left(app: App, entry: Entry, progress: Progress, clock: Clock) -> None:
    """What runs on it, and what points to it."""
    with progress.step("controllers", "controllers") as step:
        ended = await background.ended(app.user, entry, _DRAIN, clock, step.note)
        step.text = f"{counted(len(ended), 'controller')} ended" if ended else "no controller was running"
    if not entry.used:
        progress.skip("use", "--use was not asked for")
        return
    with progress.step("use", "your kubeconfig") as step:
        step.text = await current_context.undo(app.user, entry, app.book)


def _tell(app: App, entry: Entry, progress: Progress, clock: Clock) -> None:
    """The recording is told; one that cannot be written is no reason to keep a cluster."""
    with progress.step("recording", "its end in the recording") as step:
        trouble = lookup.cluster_deleted(app.user, entry, clock.now())
        step.text, step.doubtful = trouble or "its end noted in the recording", bool(trouble)
