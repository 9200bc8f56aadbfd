"""Controllers of clusters of ours in the background: `run`, started again without a terminal, one process for each.

Such a process has a session of its own, the folder in which it was started, and a log in its cluster's folder. It is
known by its command line, which names that log, from the moment that it is there; and by the lock of its run from the
moment that its cluster has answered.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from kubectl_ctrl import exec as programs
from kubectl_ctrl import files
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.registry import Entry
from kubectl_ctrl.errors import CtrlError, NotRecorded, ProgramFailed, RecordingError, TimedOut
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.loader.sources import Sourced
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.processes import of_module
from kubectl_ctrl.runs import background_notes, holder, runners
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.runs.runners import Runner
from kubectl_ctrl.runs.termination import Live
from kubectl_ctrl.runs.termination import ended as _ended
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value

MODULE = "kubectl_ctrl.cli.background_main"
_PACE = 0.1
_PATIENCE = 60.0
# What a run has not recorded so long after it took its place, it does not record.
_UNRECORDED = 5.0
# The last line of a run's header, and the log lines of problems.
_BEGUN = re.compile(r"leader election .*; \w+ stops it")
_WRONG = re.compile(r"\S+T\d\d:\d\d:\d\d\S* (warning|error): ")
_LAST_WORDS = 20
_UNSYNCED = "it waits for its caches"


class Background(Value, kw_only=True):
    """One controller in the background; `said` is how long its log was before."""

    entry: Entry
    controller: str
    pid: int
    command: tuple[str, ...]  # does the same in the foreground
    said: int = 0

    @property
    def log(self) -> Path:
        return background_notes.log_of(self.entry, self.controller)

    def __str__(self) -> str:
        return f"{self.controller} runs in the background (process {self.pid})"


def started(
    environ: Mapping[str, str], entry: Entry, resolved: Resolved, sourced: Sourced, *, everywhere: bool = False
) -> Background:
    """Have it run there; one that was started before, and has not come so far that its lock shows it, is that one."""
    name = sourced.spec.name
    log = background_notes.log_of(entry, name)
    where = [f"--context={entry.context}", f"--namespace={resolved.namespace}"]
    where += ["--all-namespaces"] if everywhere else []
    words = ("run", background_notes.whole(sourced.word), f"--kubeconfig={entry.kubeconfig}", *where)
    pids = starting(entry, name)
    said = 0
    if not pids:
        said = _prepared(log)
        python, env = _python(environ)
        pids = (programs.detached([*python, "-m", MODULE, str(log), *words], env=env, output=log),)
    command = ("kubectl", "ctrl", "run", words[1], *where)
    return Background(entry=entry, controller=name, pid=pids[0], command=command, said=said)


def _prepared(log: Path) -> int:
    """Make its folder, and forget how an earlier start ended; how long the log is."""
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        background_notes.forget(log)
        return log.stat().st_size if log.exists() else 0
    except OSError as error:
        raise CtrlError(
            f"The folder {str(log.parent)!r} for controllers in the background cannot be used: {error.strerror}.",
            next_step=files.state_remedy(error),
        ) from error


def starting(entry: Entry, controller: str = "") -> tuple[int, ...]:
    """The processes in the background of that cluster, those too that hold no lock yet; of all controllers or of one.

    Asked of the list of processes, so it is slower than a look at locks.
    """
    if not entry.controllers.is_dir():
        return ()
    if controller:
        return of_module(MODULE, background_notes.log_of(entry, controller))
    return of_module(MODULE, entry.controllers, below=True)


def _python(environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """This Python, which is to find this package and nothing of the current folder; and the environment for it."""
    env = dict(environ)
    if sys.flags.isolated:
        return [sys.executable, "-I"], env
    root = Path(__file__).resolve().parents[2]
    if not sys.flags.safe_path and sys.path and Path(sys.path[0]).resolve() == root:
        # `python -m kubectl_ctrl` in a checkout: only the folder has the package.
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), env.get("PYTHONPATH", "")]))
    return [sys.executable, "-P"], env


# Until it works.


async def settled(
    user: User, one: Background, clock: Clock, note: Callable[[str], None], patience: float = _PATIENCE
) -> None:
    """Return once it has its place on this machine and its caches are synced; raises when it died, or takes too long.

    Whether they are, it tells its recording, and nobody where it keeps none: then its place is enough.
    """
    start = clock.elapsed()
    since: float | None = None  # when it took its place
    told = ""
    while True:
        runner = _runner(user, one)
        if runner is not None and since is None:
            since = clock.elapsed()
        early = since is None or clock.elapsed() - since <= _UNRECORDED
        waits = "it starts" if runner is None else _waits(user, one, runner.run, clock.now(), early=early)
        if not waits:
            return
        code = _code(one)
        if code is not None:
            raise _died(one, code)
        if clock.elapsed() - start > patience:
            raise _slow(one, waits, patience)
        if told != (told := f"{one.controller}: {waits}"):
            note(told)
        await clock.sleep(_PACE)


def _runner(user: User, one: Background) -> Runner | None:
    found = runners.runners(user.state, controller=one.controller)
    return next((runner for runner in found if runner.pid == one.pid), None)


def _waits(user: User, one: Background, run: str, now: float, *, early: bool) -> str:
    """What is still to come before that run works, as it tells, "" for nothing; `early`: it may not have begun to."""
    if user.environ.get("KUBECTL_CTRL_RECORD", "auto") != "auto":
        return ""  # it records elsewhere, or not at all
    try:
        with opened(recording_file(user), now) as recording:
            moments = recording.moments(run=run)
    except (NotRecorded, RecordingError):
        moments = ()
    for moment in moments:
        if moment.state.controller == one.controller:
            return "" if moment.state.synced else moment.state.message or _UNSYNCED
    return _UNSYNCED if early else ""


def _code(one: Background) -> int | None:
    """With which code it ended; None while it runs. A child of ours stays a process until it is asked."""
    try:
        pid, status = os.waitpid(one.pid, os.WNOHANG)
    except ChildProcessError:
        if holder.runs(one.pid):
            return None
        page = background_notes.read(one.log)
        return page.code if page is not None and page.code is not None else 1
    return os.waitstatus_to_exitcode(status) if pid else None


def _died(one: Background, code: int) -> CtrlError:
    lines = _last_lines(one)
    failed = next((at for at, line in enumerate(lines) if line.startswith("error[")), len(lines) - 1)
    said = re.sub(r"^error\[[A-Z-]+\]: ", "", lines[failed]) if lines else ""
    advice = next((line.removeprefix("next: ") for line in lines[failed:] if line.startswith("next: ")), "")
    outcome = f"exited with code {code}" if code >= 0 else f"was terminated by signal {-code}"
    error = ProgramFailed(
        f"{one.controller} {outcome} as soon as it was in the background" + (f": {said}" if said else "."),
        argv=one.command,
        outcome=outcome,
        code=code,
        stderr="\n".join(lines),
    )
    look = f"all that it said: {ctrl('logs', *_named(one.entry, one.controller))}"
    error.next_step = f"{advice}; {look}" if advice else look
    return error


def _last_lines(one: Background) -> list[str]:
    """Of what it said since it was started, and behind the lines with which a run begins."""
    try:
        with one.log.open("rb") as log:
            log.seek(one.said if one.log.stat().st_size >= one.said else 0)
            lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []
    begun = next((at for at, line in enumerate(lines) if _BEGUN.fullmatch(line)), -1)
    return lines[begun + 1 :][-_LAST_WORDS:]


def _slow(one: Background, waits: str, patience: float) -> CtrlError:
    words = _named(one.entry, one.controller)
    return TimedOut(
        f"{one.controller} does not work within {format_duration(patience)}: {waits}. Process {one.pid} goes on.",
        tried=_complaint(_last_lines(one)),
        next_step=f"{ctrl('logs', *words)} shows what it says, {ctrl('stop', *words)} ends it",
    )


def _complaint(lines: Sequence[str]) -> str:
    """The last warning or error in a log, with the place in the code where it gives one; "" for none."""
    found = [at for at, line in enumerate(lines) if _WRONG.match(line)]
    if not found:
        return ""
    first, *more = lines[found[-1] :]
    stack = [line.strip() for line in takewhile(lambda line: line.startswith(" "), more)]
    places = [line for line in stack if line.startswith("File ")]
    return "it says: " + _WRONG.sub("", first) + (f" {places[-1]}" if places else "")


def _named(entry: Entry, *words: str) -> tuple[str, ...]:
    return (*words, "--name", entry.name)


# Until it has ended.


async def drained(
    user: User,
    entry: Entry,
    controllers: Collection[str],
    clock: Clock,
    note: Callable[[str], None],
    *,
    patience: float = _PATIENCE,
) -> None:
    """Return once those of these controllers are gone that were asked to end before, and finish what is under way."""

    def find() -> list[Live]:
        found = processes(user, entry)
        return [live for live in found if live.asked and not set(controllers).isdisjoint(live.controllers)]

    try:
        await _ended(find, patience, clock, note, kill=False)
    except TimedOut as error:
        error.next_step = f"{ctrl('stop', *_named(entry, *controllers), '--force')} kills it after a while"
        raise


async def ended(user: User, entry: Entry, drain: float, clock: Clock, note: Callable[[str], None]) -> list[str]:
    """Have every process of ours on that cluster end, wherever it was started; gives their controllers.

    Those that have not finished what is under way within `drain` seconds are killed.
    """
    gone = await _ended(lambda: processes(user, entry), drain, clock, note, kill=True)
    return sorted({name for live in gone for name in live.controllers})


def processes(user: User, entry: Entry) -> list[Live]:
    """All processes of ours on that cluster."""
    found: dict[int, Live] = {}
    asked = {page.pid for _, page in background_notes.pages(entry) if page.asked is not None}
    for runner in runners.runners(user.state):
        if runner.cluster in runners.keys(entry) and holder.is_here(runner.holder):
            was_asked = runner.asked or runner.pid in asked
            found[runner.pid] = Live(pid=runner.pid, controllers=runner.controllers, asked=was_asked)
    for name in background_notes.logged(entry):
        for pid in starting(entry, name):
            found.setdefault(pid, Live(pid=pid, controllers=(name,), asked=pid in asked))
    return list(found.values())
