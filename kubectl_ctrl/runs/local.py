"""The controllers that run on this machine, according to locks and the notes of background processes.

No server is queried, so `status`, `stop` and `logs` also work if the cluster does not answer.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import ClusterEntry, Registry
from kubectl_ctrl.errors import NotRecorded, RecordingError
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.kubeconfig.resolution import Resolved, ca_fingerprint
from kubectl_ctrl.model.suggestions import Command, command
from kubectl_ctrl.runs import background, background_notes, holder, runners
from kubectl_ctrl.runs.background_notes import BackgroundNote
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.runs.runners import Runner
from kubectl_ctrl.runs.termination import LiveProcess
from kubectl_ctrl.target import guard
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value


class SelectedCluster(Value, kw_only=True):
    """The cluster that a command line selects; `entry` is set for a managed cluster."""

    text: str  # for messages
    context: str
    keys: frozenset[str]
    others: frozenset[str] = frozenset()  # the keys of clusters that are known not to be this one
    entry: ClusterEntry | None = None
    named: bool = False  # by a flag or the variable of --name; else it is the cluster of the current context

    def has(self, runner: Runner) -> bool:
        if runner.unreadable:
            return True  # it could run on any cluster
        if self.keys:
            return runner.cluster in self.keys
        # For a cluster without a recording, only the name of the context is known; other clusters may have the same.
        return runner.context == self.context and runner.cluster not in self.others

    @property
    def flag(self) -> Command:
        """The flag that selects it."""
        return _flag(self.entry.name if self.entry else "", self.context)


def _flag(name: str, context: str) -> Command:
    return command("--name", name) if name else command("--context", context)


class ProcessState(StrEnum):
    """The state of a controller's process."""

    STARTING = "starting"  # its cluster has not answered yet
    RUNNING = "running"
    DRAINING = "draining"  # asked to stop; its running reconciles may finish
    STOPPED = "stopped"  # by SIGSTOP or a debugger
    DEAD = "dead"  # without an exit code, as after kill -9 or a reboot
    FAILED = "failed"  # ended with an error
    ENDED = "ended"


class LocalController(Value, kw_only=True):
    """One controller that runs on this machine, or that was started in the background and no longer runs."""

    controller: str
    cluster: str  # the name of a managed cluster, else ""
    context: str
    scope: str  # a namespace, "" for all of them
    pid: int
    since: float
    state: ProcessState
    run: str = ""
    word: str = ""  # its argument on the command line, if it is in the background
    log: Path | None = None
    code: int | None = None
    unreadable: Runner | None = None  # whose lock file cannot be read: cluster, scope, pid and time are unknown

    @property
    def lives(self) -> bool:
        return self.state not in (ProcessState.DEAD, ProcessState.FAILED, ProcessState.ENDED)

    @property
    def place(self) -> str:
        """Its cluster, for messages."""
        return f"cluster {self.cluster}" if self.cluster else f"context {self.context}"

    @property
    def flag(self) -> Command:
        """The flag that selects its cluster."""
        return _flag(self.cluster, self.context)


def selected(user: User, resolved: Resolved) -> SelectedCluster:
    """The cluster of kubectl's flags and the kubeconfig; a managed one if it has the same server and CA."""
    place = (resolved.server, ca_fingerprint(resolved))
    for entry in Registry.of(user).entries():
        if (entry.server, entry.ca) == place:
            return managed(entry)
    name = guard.context_name(resolved)
    here, there = _recorded(user, place)
    others = there.union(*map(runners.keys, Registry.of(user).entries()))
    return SelectedCluster(text=f"context {name}", context=name, keys=here, others=others)


def managed(entry: ClusterEntry) -> SelectedCluster:
    """A managed cluster."""
    return SelectedCluster(text=f"cluster {entry.name}", context=entry.context, keys=runners.keys(entry), entry=entry)


def _recorded(user: User, place: tuple[str, str]) -> tuple[frozenset[str], frozenset[str]]:
    """The recorded keys of the cluster with that server and CA, and those of all other clusters."""
    try:
        with opened(recording_file(user), SystemClock().now()) as recording:
            clusters = recording.clusters()
    except (NotRecorded, RecordingError):
        return frozenset(), frozenset()
    here = frozenset(one.key for one in clusters if place in one.servers)
    return here, frozenset(one.key for one in clusters) - here


def controllers(user: User) -> list[tuple[LocalController, Runner | None]]:
    """All controllers of this machine, sorted by cluster and name, each with its lock if it holds one."""
    entries = Registry.of(user).entries()
    by_key = {key: entry for entry in entries for key in runners.keys(entry)}
    found: list[tuple[LocalController, Runner | None]] = [
        (_running(runner, by_key), runner) for runner in runners.runners(user.state)
    ]
    known = {(one.cluster, one.controller) for one, _ in found}
    for entry in entries:
        found += [(one, None) for one in _noted(entry, known)]
    return sorted(found, key=lambda pair: (pair[0].cluster or pair[0].context, pair[0].controller, pair[0].scope))


def on(user: User, place: SelectedCluster) -> list[LocalController]:
    """The controllers of one cluster."""
    return split_by_cluster(user, place)[0]


def split_by_cluster(user: User, place: SelectedCluster) -> tuple[list[LocalController], list[LocalController]]:
    """The controllers of one cluster, and all others."""
    name = place.entry.name if place.entry else None
    here: list[LocalController] = []
    elsewhere: list[LocalController] = []
    for one, runner in controllers(user):
        there = place.has(runner) if runner else one.cluster == name
        (here if there else elsewhere).append(one)
    return here, elsewhere


def _running(runner: Runner, by_key: Mapping[str, ClusterEntry]) -> LocalController:
    entry = by_key.get(runner.cluster)
    log = background_notes.log_of(entry, runner.controller) if entry else None
    note = background_notes.read(log) if log else None
    if note is not None and note.pid != runner.pid:
        note = None  # of an earlier process; this one is in the foreground
    return LocalController(
        controller=runner.controller,
        cluster=entry.name if entry else "",
        context=runner.context,
        scope=runner.scope,
        pid=runner.pid,
        since=runner.since,
        state=_state(runner, note),
        run=runner.run,
        word=note.word if note else "",
        log=log if note else None,
        unreadable=runner if runner.unreadable else None,
    )


def _state(runner: Runner, note: BackgroundNote | None) -> ProcessState:
    if holder.is_stopped(runner.pid):
        return ProcessState.STOPPED
    asked = runner.asked or (note is not None and note.asked is not None)
    return ProcessState.DRAINING if asked else ProcessState.RUNNING


def _noted(entry: ClusterEntry, known: Container[tuple[str, str]]) -> Iterator[LocalController]:
    """Controllers of the cluster's notes that do not hold a lock."""
    for name, note in background_notes.notes(entry):
        if (entry.name, name) in known:
            continue
        if note.pid in background.starting(entry, name):
            state = ProcessState.STARTING
        elif note.ended is None:
            state = ProcessState.DEAD
        else:
            state = ProcessState.FAILED if note.code else ProcessState.ENDED
        yield LocalController(
            controller=name,
            cluster=entry.name,
            context=entry.context,
            scope=note.scope,
            pid=note.pid,
            since=note.began if note.ended is None else note.ended,
            state=state,
            word=note.word,
            log=background_notes.log_of(entry, name),
            code=note.code,
        )


def lives(user: User, place: SelectedCluster) -> list[LiveProcess]:
    """The processes on this machine that run controllers on that cluster."""
    if place.entry is not None:
        return background.processes(user, place.entry)
    found = {runner.pid: runner for runner in runners.runners(user.state) if place.has(runner)}
    return [
        LiveProcess(pid=runner.pid, controllers=runner.controllers, asked=runner.asked)
        for runner in found.values()
        if holder.is_here(runner.holder)
    ]
