"""The reasons why a run is not idle; also printed when the run times out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.runtime.member import Member
from kubectl_ctrl.runtime.summary import Unmet
from kubectl_ctrl.workqueue.values import KeyStage

# A run is idle after this long without anything to do.
QUIET = 1.0

_WORDS = {KeyStage.READY: "has not run yet", KeyStage.RUNNING: "runs", KeyStage.BACKOFF: "waits for its retry"}


def unmet(members: Iterable[Member], now: float) -> Iterator[Unmet]:
    """The reasons; a schedule (`Result(after=...)` alone) is none."""
    for member in members:
        yield from (Unmet(what, since) for what, since in member.obstacles())
        if member.behind:
            yield Unmet(f"{member.spec.name} has {member.behind} changes to process", now)
        for informer in member.informers:
            if informer.pending:
                yield Unmet(
                    f"the watch of {informer.selection.resource} has not reached {informer.pending} own writes yet", now
                )
        yield from _at_work(member)
        for request, standing in member.controller.standings.items():
            if standing.verdict.outcome is Outcome.WAITING:
                yield Unmet(f"{member.spec.name} {request} waits for {standing.verdict.message}", standing.since)


def _at_work(member: Member) -> Iterator[Unmet]:
    counts = member.controller.counts
    if not (counts.ready or counts.running or counts.backoff):
        return
    for entry in member.state().entries:
        if entry.state in _WORDS:
            tries = f" ({entry.failures} failures)" if entry.failures else ""
            yield Unmet(f"{member.spec.name} {entry.request}{tries} {_WORDS[KeyStage(entry.state)]}", entry.since)
