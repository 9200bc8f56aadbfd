"""One runner per cluster, controller and scope on this machine, told by locked files.

A run holds the lock of its own file. The lock is the kernel's, so it goes with the process however it dies; what the
file says is for messages. All namespaces and one of them overlap, and they have different files: so whoever takes or
looks does it behind a gate, another lock, which is held for the few system calls of one look and never while waiting.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kubectl_ctrl import files, locks
from kubectl_ctrl.clusters.registry import Entry, unread_key
from kubectl_ctrl.errors import CtrlError, Refused
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.runs import holder
from kubectl_ctrl.value import Value, asdict

_GATE = "gate"
_MOST = 65536  # bytes of a lock file


class Runner(Value, kw_only=True, eq=False):
    """A run of one controller, as its file tells; `holder` is how its process signs."""

    cluster: str
    controller: str
    scope: str  # a namespace; "" is all of them
    pid: int
    run: str
    controllers: tuple[str, ...]
    context: str
    since: float  # wall time
    holder: str
    asked: bool = False  # to stop, and it may take its time; it is the same runner then
    unreadable: str = ""  # the path of its lock file, if that cannot be read: only `controller` is known then

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Runner) and {**asdict(self), "asked": other.asked} == asdict(other)

    def __hash__(self) -> int:
        return hash((self.holder, self.cluster, self.controller, self.scope))

    @property
    def where(self) -> str:
        return f"namespace {self.scope}" if self.scope else "all namespaces"

    def overlaps(self, scope: str) -> bool:
        return not self.scope or not scope or self.scope == scope

    @property
    def text(self) -> str:
        """`process 4121 on this machine (namespace default)`."""
        if self.unreadable:
            return f"a process on this machine whose lock file cannot be read: {self.unreadable}"
        return f"process {self.pid} on this machine ({self.where})"

    @property
    def remedy(self) -> str:
        """How to stop a process whose lock file cannot be read."""
        return f"{command('lsof', self.unreadable)} prints the process, and kill stops it"


def keys(entry: Entry) -> frozenset[str]:
    """What a cluster of ours goes by."""
    return frozenset(filter(None, (entry.uid, unread_key(entry.server, entry.ca) if entry.server else "")))


@contextmanager
def only_runner(folder: Path, mine: Runner) -> Iterator[None]:
    """Hold the place for the block; Refused, naming who has it, while a run of an overlapping scope has it."""
    path = _path(folder, mine)
    with _gate(folder):
        _pass(mine, _held(folder, mine.cluster, mine.controller))
        handle = _acquired(path)
        if handle is None:
            raise _refusal(mine, None)
        try:
            os.ftruncate(handle, 0)
            files.write(handle, json.dumps(asdict(mine)).encode())
        except BaseException as error:
            locks.release(path, handle)
            if isinstance(error, OSError):
                raise _unusable("written", path, error) from error
            raise
    try:
        yield
    finally:
        try:
            with _gate(folder):
                path.unlink(missing_ok=True)
        finally:
            os.close(handle)


def check_free(folder: Path, mine: Runner) -> None:
    """Refused as by `only_runner`, of which this is only a look: the place may be taken by others after it.

    Only those count that go by the same context. Behind a proxy several clusters may have one address, and which of
    them another context means nobody can say who has not asked it.
    """
    others = runners(folder, cluster=mine.cluster, controller=mine.controller)
    _pass(mine, [other for other in others if other.context == mine.context])


def _pass(mine: Runner, others: Sequence[Runner]) -> None:
    for other in others:
        if other.overlaps(mine.scope):
            raise _refusal(mine, other)


def runners(folder: Path, *, cluster: str = "", controller: str = "") -> list[Runner]:
    """The runs on this machine whose lock is really held; of all clusters and controllers where none is named."""
    if not (folder / "runners").is_dir():
        return []
    with ExitStack() as looking:
        with suppress(CtrlError):  # where no file can be made no run can begin, for which a look could be in the way
            looking.enter_context(_gate(folder))
        return _held(folder, cluster, controller)


def ask_to_stop(folder: Path, runner: Runner) -> bool:
    """Send its process a SIGTERM, its first, which lets it finish; False when it has gone, or is not of here."""
    if not holder.is_here(runner.holder):
        return False
    # The descriptor stays with the process that has the pid now; the lock says that it is the one that is meant.
    process = os.pidfd_open(runner.pid) if hasattr(os, "pidfd_open") and holder.runs(runner.pid) else None
    try:
        found = runners(folder, cluster=runner.cluster, controller=runner.controller)
        if runner not in found:
            return False
        if found[found.index(runner)].asked:
            return True
        if process is not None:
            signal.pidfd_send_signal(process, signal.SIGTERM)
        else:
            os.kill(runner.pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    finally:
        if process is not None:
            os.close(process)
    note_asked(folder, runner.holder)
    return True


def note_asked(folder: Path, signed: str) -> None:
    """Let everyone see that the process that signs so was asked to end: a second time would cut short what it finishes.

    Whoever asks notes it: it may be long until the process itself comes to that.
    """
    if not (folder / "runners").is_dir():
        return
    with suppress(CtrlError, OSError), _gate(folder):  # a full disk keeps nobody from ending
        for runner in _held(folder, "", ""):
            if runner.holder == signed and not runner.asked:
                _mark_asked(_path(folder, runner))


def _mark_asked(path: Path) -> None:
    """In one write, which leaves something to read whenever we are killed; what a later version noted stays."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        content = {**json.loads(os.pread(handle, _MOST, 0)), "asked": True}
        os.ftruncate(handle, os.pwrite(handle, json.dumps(content).encode(), 0))
    finally:
        os.close(handle)


def _path(folder: Path, runner: Runner) -> Path:
    from hashlib import sha256

    place = sha256(json.dumps([runner.cluster, runner.controller, runner.scope]).encode()).hexdigest()
    return folder / "runners" / f"{runner.controller}-{place[:20]}.lock"


@contextmanager
def _gate(folder: Path) -> Iterator[None]:
    handle = _acquired(folder / "runners" / _GATE, wait=True)
    assert handle is not None
    try:
        yield
    finally:
        os.close(handle)


def _held(folder: Path, cluster: str, controller: str) -> list[Runner]:
    """Behind the gate only: a look takes the lock for a moment, and must not be taken for its holder."""
    found = []
    for path in sorted((folder / "runners").glob("*.lock")):
        handle = _looked_into(path)
        if handle is None:
            continue
        try:
            free, runner = locks.lock(handle), _told(handle)
        finally:
            os.close(handle)
        if free:
            with suppress(OSError):
                path.unlink(missing_ok=True)  # left behind by a kill
            continue
        runner = runner or _unread(path)
        if (not runner.cluster or cluster in ("", runner.cluster)) and controller in ("", runner.controller):
            found.append(runner)
    return found


def _unread(path: Path) -> Runner:
    """The holder of a lock whose file cannot be read: its controller alone is known, by the name of the file.

    It may be on any cluster and in any namespace, so it counts for all of them.
    """
    name = path.name.rpartition("-")[0]
    return Runner(
        cluster="",
        controller=name,
        scope="",
        pid=0,
        run="",
        controllers=(name,),
        context="",
        since=0.0,
        holder="",
        unreadable=str(path),
    )


def _looked_into(path: Path) -> int | None:
    """To be written where that can be: some network file systems lock no other."""
    for mode in (os.O_RDWR, os.O_RDONLY):
        with suppress(OSError):
            return os.open(path, mode | os.O_CLOEXEC | os.O_NOFOLLOW)
    return None


def _told(handle: int) -> Runner | None:
    try:
        content = files.known(Runner, json.loads(os.pread(handle, _MOST, 0)))
        return Runner(**{**content, "controllers": tuple(content["controllers"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _acquired(path: Path, *, wait: bool = False) -> int | None:
    try:
        return locks.acquire(path, wait=wait)
    except OSError as error:
        raise _unusable("made or locked", path, error) from error


def _unusable(what: str, path: Path, error: OSError) -> CtrlError:
    return CtrlError(
        f"The lock file {str(path)!r} cannot be {what}: {error.strerror}.", next_step=files.state_remedy(error)
    )


def _refusal(mine: Runner, other: Runner | None) -> Refused:
    who = other.text if other else f"another process ({mine.where})"
    if other and other.unreadable:
        next_step = other.remedy
    elif other and mine.scope and not other.scope:
        next_step = "stop that one: it works in all namespaces"
    elif other and other.scope and not mine.scope:
        next_step = "stop that one, or use one other namespace with -n"
    else:
        next_step = "stop that one, or use another namespace with -n"
    return Refused(f"{mine.controller} already runs here for this cluster: {who}.", next_step=next_step)
