"""Controllers in the background of managed clusters: one process of `run` for each, without a terminal.

Such a process has its own session, the folder in which it was started, and a log in the folder of its cluster. Its
command line names that log, so the list of processes shows it at once. The lock of its run shows it only after the
cluster has answered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from kubectl_ctrl import exec as programs
from kubectl_ctrl import files
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.errors import CtrlError, NotRecorded, ProgramFailed, RecordingError, TimedOut
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.processes import of_module
from kubectl_ctrl.runs import background_notes, holder, runners
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.runs.termination import LiveProcess
from kubectl_ctrl.runs.termination import ended as _ended
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value

MODULE = "kubectl_ctrl.cli.background_main"
_PACE = 0.1
_PATIENCE = 60.0
# A run that has recorded nothing so long after it took its lock records nothing at all.
_UNRECORDED = 5.0
# The last line of a run's header, and the log lines of problems.
_BEGUN = re.compile(r"leader election .*; \w+ stops it")
_WRONG = re.compile(r"\S+T\d\d:\d\d:\d\d\S* (warning|error): ")
_LAST_WORDS = 20
_UNSYNCED = "its caches are not synced"


class BackgroundController(Value, kw_only=True):
    """One controller in the background."""

    entry: ClusterEntry
    controller: str
    pid: int
    command: tuple[str, ...]  # the same in the foreground
    log_start: int = 0  # the length of its log before it was started

    @property
    def log(self) -> Path:
        return background_notes.log_of(self.entry, self.controller)

    def __str__(self) -> str:
        return f"{self.controller} runs in the background (process {self.pid})"


def started(
    environ: Mapping[str, str],
    entry: ClusterEntry,
    resolved: Resolved,
    sourced: SourcedController,
    *,
    everywhere: bool = False,
) -> BackgroundController:
    """Start it, or return the process that was started before and does not hold its lock yet."""
    name = sourced.spec.name
    log = background_notes.log_of(entry, name)
    where = [f"--context={entry.context}", f"--namespace={resolved.namespace}"]
    where += ["--all-namespaces"] if everywhere else []
    words = ("run", background_notes.absolute(sourced.word), f"--kubeconfig={entry.kubeconfig}", *where)
    pids = starting(entry, name)
    log_start = 0
    if not pids:
        log_start = _prepared(log)
        python, env = programs.python(environ)
        pids = (programs.detached([*python, "-m", MODULE, str(log), *words], env=env, output=log),)
    command = ("kubectl", "ctrl", "run", words[1], *where)
    return BackgroundController(entry=entry, controller=name, pid=pids[0], command=command, log_start=log_start)


def _prepared(log: Path) -> int:
    """Create its folder and delete the note of an earlier start; the length of the log."""
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        background_notes.forget(log)
        return log.stat().st_size if log.exists() else 0
    except OSError as error:
        raise CtrlError(
            f"Cannot use the folder {str(log.parent)!r} for controllers in the background: {error.strerror}.",
            next_step=files.state_remedy(error),
        ) from error


def starting(entry: ClusterEntry, controller: str = "") -> tuple[int, ...]:
    """The background processes of a cluster, also those without a lock yet; of one controller or of all.

    It reads the list of processes, which is slower than reading locks.
    """
    if not entry.controllers.is_dir():
        return ()
    if controller:
        return of_module(MODULE, background_notes.log_of(entry, controller))
    return of_module(MODULE, entry.controllers, below=True)


async def settled(
    user: User, one: BackgroundController, clock: Clock, note: Callable[[str], None], patience: float = _PATIENCE
) -> None:
    """Wait until it holds its lock and its caches are synced; an error if it exits, or on a timeout.

    Only its recording shows that the caches are synced. Without a recording, the lock is enough.
    """
    start = clock.elapsed()
    since: float | None = None  # when it took its lock
    reported = ""
    while True:
        found = runners.runners(user.state, controller=one.controller)
        runner = next((runner for runner in found if runner.pid == one.pid), None)
        if runner is not None and since is None:
            since = clock.elapsed()
        early = since is None or clock.elapsed() - since <= _UNRECORDED
        waits = "it is starting" if runner is None else _waits(user, one, runner.run, clock.now(), early=early)
        if not waits:
            return
        code = _code(one)
        if code is not None:
            raise _died(one, code)
        if clock.elapsed() - start > patience:
            raise _slow(one, waits, patience)
        if reported != (reported := f"{one.controller}: {waits}"):
            note(reported)
        await clock.sleep(_PACE)


def _waits(user: User, one: BackgroundController, run: str, now: float, *, early: bool) -> str:
    """What the run waits for, according to its recording; "" for nothing. `early`: it may not have recorded yet."""
    if user.environ.get("KUBECTL_CTRL_RECORD", "auto") != "auto":
        return ""  # another recording, or none
    try:
        with opened(recording_file(user), now) as recording:
            moments = recording.moments(run=run)
    except (NotRecorded, RecordingError):
        moments = ()
    for moment in moments:
        if moment.state.controller == one.controller:
            return "" if moment.state.synced else moment.state.message or _UNSYNCED
    return _UNSYNCED if early else ""


def _code(one: BackgroundController) -> int | None:
    """Its exit code; None while it runs. A child stays a zombie until waitpid collects it."""
    try:
        pid, status = os.waitpid(one.pid, os.WNOHANG)
    except ChildProcessError:
        if holder.runs(one.pid):
            return None
        note = background_notes.read(one.log)
        return note.code if note is not None and note.code is not None else 1
    return os.waitstatus_to_exitcode(status) if pid else None


def _died(one: BackgroundController, code: int) -> CtrlError:
    lines = _last_lines(one)
    failed = next((at for at, line in enumerate(lines) if line.startswith("error[")), len(lines) - 1)
    reason = re.sub(r"^error\[[A-Z-]+\]: ", "", lines[failed]) if lines else ""
    advice = next((line.removeprefix("next: ") for line in lines[failed:] if line.startswith("next: ")), "")
    outcome = f"exited with code {code}" if code >= 0 else f"was terminated by signal {-code}"
    error = ProgramFailed(
        f"{one.controller} {outcome} right after its start in the background" + (f": {reason}" if reason else "."),
        argv=one.command,
        outcome=outcome,
        code=code,
        stderr="\n".join(lines),
    )
    logs = f"its log: {ctrl('logs', one.controller, '--name', one.entry.name)}"
    error.next_step = f"{advice}; {logs}" if advice else logs
    return error


def _last_lines(one: BackgroundController) -> list[str]:
    """The last lines of its log since its start, without the header of the run."""
    try:
        with one.log.open("rb") as log:
            log.seek(one.log_start if one.log.stat().st_size >= one.log_start else 0)
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []
    begun = next((at for at, line in enumerate(lines) if _BEGUN.fullmatch(line)), -1)
    return lines[begun + 1 :][-_LAST_WORDS:]


def _slow(one: BackgroundController, waits: str, patience: float) -> CtrlError:
    words = (one.controller, "--name", one.entry.name)
    return TimedOut(
        f"{one.controller} is not ready after {format_duration(patience)}: {waits}. Process {one.pid} still runs.",
        tried=_complaint(_last_lines(one)),
        next_step=f"{ctrl('logs', *words)} prints its log, {ctrl('stop', *words)} stops it",
    )


def _complaint(lines: Sequence[str]) -> str:
    """The last warning or error in a log, with its line of code if there is one; "" for none."""
    found = [at for at, line in enumerate(lines) if _WRONG.match(line)]
    if not found:
        return ""
    first, *more = lines[found[-1] :]
    stack = [line.strip() for line in takewhile(lambda line: line.startswith(" "), more)]
    places = [line for line in stack if line.startswith("File ")]
    return "its log: " + _WRONG.sub("", first) + (f" {places[-1]}" if places else "")


async def drained(
    user: User,
    entry: ClusterEntry,
    controllers: Collection[str],
    clock: Clock,
    note: Callable[[str], None],
    *,
    patience: float = _PATIENCE,
) -> None:
    """Wait for the exit of those of these controllers that are already shutting down."""

    def find() -> list[LiveProcess]:
        found = processes(user, entry)
        return [live for live in found if live.asked and not set(controllers).isdisjoint(live.controllers)]

    try:
        await _ended(find, patience, clock, note, kill=False)
    except TimedOut as error:
        error.next_step = f"{ctrl('stop', *controllers, '--name', entry.name, '--force')} kills it after a timeout"
        raise


async def ended(user: User, entry: ClusterEntry, drain: float, clock: Clock, note: Callable[[str], None]) -> list[str]:
    """Stop every process of kubectl ctrl on that cluster, in the background or not; returns their controllers.

    Processes that still run after `drain` seconds are killed.
    """
    gone = await _ended(lambda: processes(user, entry), drain, clock, note, kill=True)
    return sorted({name for live in gone for name in live.controllers})


def processes(user: User, entry: ClusterEntry) -> list[LiveProcess]:
    """All processes of kubectl ctrl that run controllers on that cluster."""
    found: dict[int, LiveProcess] = {}
    asked = {note.pid for _, note in background_notes.notes(entry) if note.asked is not None}
    for runner in runners.runners(user.state):
        if runner.cluster in runners.keys(entry) and holder.is_here(runner.holder):
            was_asked = runner.asked or runner.pid in asked
            found[runner.pid] = LiveProcess(pid=runner.pid, controllers=runner.controllers, asked=was_asked)
    for name in background_notes.logged(entry):
        for pid in starting(entry, name):
            found.setdefault(pid, LiveProcess(pid=pid, controllers=(name,), asked=pid in asked))
    return list(found.values())
