"""Which controllers run here, on which clusters: by locks, by notes of the background, never by asking a server."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import Entry, Registry
from kubectl_ctrl.errors import NotRecorded, RecordingError
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.kubeconfig.resolution import Resolved, ca_fingerprint
from kubectl_ctrl.model.suggestions import Command, command
from kubectl_ctrl.runs import background, background_notes, holder, runners
from kubectl_ctrl.runs.background_notes import Page
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.runs.runners import Runner
from kubectl_ctrl.runs.termination import Live
from kubectl_ctrl.target import guard
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value


class Where(Value, kw_only=True):
    """The cluster that a command line means; `entry` is its page where it is one of ours."""

    text: str  # for messages
    context: str
    keys: frozenset[str]
    others: frozenset[str] = frozenset()  # the keys of clusters that are known not to be this one
    entry: Entry | None = None
    named: bool = False  # in this call, or by the variable of --name; else it is the current context's

    def has(self, runner: Runner) -> bool:
        if runner.unreadable:
            return True  # it may run on any cluster
        if self.keys:
            return runner.cluster in self.keys
        # Of a cluster of which nothing was recorded only the context's name is known; others may have the same.
        return runner.context == self.context and runner.cluster not in self.others

    @property
    def flag(self) -> Command:
        """What names it to a verb."""
        return _flag(self.entry.name if self.entry else "", self.context)


def _flag(name: str, context: str) -> Command:
    return command("--name", name) if name else command("--context", context)


class State(StrEnum):
    """How a controller stands, as far as its process tells."""

    STARTING = "starting"  # its cluster has not answered yet
    RUNNING = "running"
    DRAINING = "draining"  # asked to stop, and finishing what is under way
    STOPPED = "stopped"  # by SIGSTOP or a debugger
    DEAD = "dead"  # ended without a word, as kill -9 and a restart of the machine do it
    FAILED = "failed"  # ended with an error
    ENDED = "ended"


class Attendance(Value, kw_only=True):
    """One controller that runs here, or was to go on in the background and does not."""

    controller: str
    cluster: str  # the name of one of ours, else ""
    context: str
    scope: str  # a namespace, "" for all of them
    pid: int
    since: float
    state: State
    run: str = ""
    word: str = ""  # what was typed for it, where it is in the background
    log: Path | None = None
    code: int | None = None
    unreadable: Runner | None = None  # whose lock file cannot be read: cluster, scope, pid and time are unknown

    @property
    def lives(self) -> bool:
        return self.state not in (State.DEAD, State.FAILED, State.ENDED)

    @property
    def place(self) -> str:
        """Its cluster, for messages."""
        return f"cluster {self.cluster}" if self.cluster else f"context {self.context}"

    @property
    def flag(self) -> Command:
        """What names its cluster to a verb."""
        return _flag(self.cluster, self.context)


def at(user: User, resolved: Resolved) -> Where:
    """The cluster that kubectl's flags and the kubeconfig mean; one of ours where its server and authority are."""
    place = (resolved.server, ca_fingerprint(resolved))
    for entry in Registry.of(user).entries():
        if (entry.server, entry.ca) == place:
            return of_ours(entry)
    name = guard.context_name(resolved)
    here, there = _recorded(user, place)
    others = there.union(*map(runners.keys, Registry.of(user).entries()))
    return Where(text=f"context {name}", context=name, keys=here, others=others)


def of_ours(entry: Entry) -> Where:
    """A cluster of the registry."""
    return Where(text=f"cluster {entry.name}", context=entry.context, keys=runners.keys(entry), entry=entry)


def _recorded(user: User, place: tuple[str, str]) -> tuple[frozenset[str], frozenset[str]]:
    """What the cluster with that server and CA goes by, as runs on it have recorded, and what all others go by."""
    try:
        with opened(recording_file(user), SystemClock().now()) as recording:
            clusters = recording.clusters()
    except (NotRecorded, RecordingError):
        return frozenset(), frozenset()
    here = frozenset(one.key for one in clusters if place in one.servers)
    return here, frozenset(one.key for one in clusters) - here


def attending(user: User) -> list[tuple[Attendance, Runner | None]]:
    """All of this machine, by cluster and controller; with the run, where it has its place."""
    entries = Registry.of(user).entries()
    by_key = {key: entry for entry in entries for key in runners.keys(entry)}
    found: list[tuple[Attendance, Runner | None]] = [
        (_running(runner, by_key), runner) for runner in runners.runners(user.state)
    ]
    known = {(one.cluster, one.controller) for one, _ in found}
    for entry in entries:
        found += [(one, None) for one in _noted(entry, known)]
    return sorted(found, key=lambda pair: (pair[0].cluster or pair[0].context, pair[0].controller, pair[0].scope))


def of(user: User, place: Where) -> list[Attendance]:
    """Those of one cluster."""
    return parted(user, place)[0]


def parted(user: User, place: Where) -> tuple[list[Attendance], list[Attendance]]:
    """Those of one cluster, and all others."""
    name = place.entry.name if place.entry else None
    here: list[Attendance] = []
    elsewhere: list[Attendance] = []
    for one, runner in attending(user):
        there = place.has(runner) if runner else one.cluster == name
        (here if there else elsewhere).append(one)
    return here, elsewhere


def _running(runner: Runner, by_key: Mapping[str, Entry]) -> Attendance:
    entry = by_key.get(runner.cluster)
    log = background_notes.log_of(entry, runner.controller) if entry else None
    page = background_notes.read(log) if log else None
    if page is not None and page.pid != runner.pid:
        page = None  # of an earlier one; this one is in the foreground
    return Attendance(
        controller=runner.controller,
        cluster=entry.name if entry else "",
        context=runner.context,
        scope=runner.scope,
        pid=runner.pid,
        since=runner.since,
        state=_state(runner, page),
        run=runner.run,
        word=page.word if page else "",
        log=log if page else None,
        unreadable=runner if runner.unreadable else None,
    )


def _state(runner: Runner, page: Page | None) -> State:
    if holder.is_stopped(runner.pid):
        return State.STOPPED
    asked = runner.asked or (page is not None and page.asked is not None)
    return State.DRAINING if asked else State.RUNNING


def _noted(entry: Entry, known: Container[tuple[str, str]]) -> Iterator[Attendance]:
    """Of the controllers that were to go on in the background, and are not known by the place that they hold."""
    for name, page in background_notes.pages(entry):
        if (entry.name, name) in known:
            continue
        if page.pid in background.starting(entry, name):
            state = State.STARTING
        elif page.ended is None:
            state = State.DEAD
        else:
            state = State.FAILED if page.code else State.ENDED
        yield Attendance(
            controller=name,
            cluster=entry.name,
            context=entry.context,
            scope=page.scope,
            pid=page.pid,
            since=page.began if page.ended is None else page.ended,
            state=state,
            word=page.word,
            log=background_notes.log_of(entry, name),
            code=page.code,
        )


# Processes.


def lives(user: User, place: Where) -> list[Live]:
    """The processes of that cluster, of this machine and of now."""
    if place.entry is not None:
        return background.processes(user, place.entry)
    found = {runner.pid: runner for runner in runners.runners(user.state) if place.has(runner)}
    return [
        Live(pid=runner.pid, controllers=runner.controllers, asked=runner.asked)
        for runner in found.values()
        if holder.is_here(runner.holder)
    ]
