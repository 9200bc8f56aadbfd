"""One runner per cluster, controller and scope on this machine, ensured by locked files.

A run locks its own file for each controller. The kernel releases the lock when the process dies, however it dies; the
content of the file is for messages. The scopes "all namespaces" and "one namespace" overlap, but have different files.
Therefore every check and every lock is made while holding another lock, the gate, for a few system calls.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kubectl_ctrl import files, locks
from kubectl_ctrl.clusters.registry import ClusterEntry, unread_key
from kubectl_ctrl.errors import CtrlError, Refused
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.runs import holder
from kubectl_ctrl.value import Value, asdict

_GATE = "gate"
_MOST = 65536  # bytes of a lock file


class Runner(Value, kw_only=True, eq=False):
    """A run of one controller, as in its lock file."""

    cluster: str
    controller: str
    scope: str  # a namespace; "" is all of them
    pid: int
    run: str
    controllers: tuple[str, ...]
    context: str
    since: float  # wall time
    holder: str  # the holder identity of its process
    asked: bool = False  # to stop; a runner that was asked is equal to the same one before
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


def keys(entry: ClusterEntry) -> frozenset[str]:
    """The keys of a managed cluster in locks and recordings."""
    return frozenset(filter(None, (entry.uid, unread_key(entry.server, entry.ca) if entry.server else "")))


@contextmanager
def only_runner(folder: Path, mine: Runner) -> Iterator[None]:
    """Hold the lock for the block; Refused if another run has an overlapping scope, naming that run."""
    path = _path(folder, mine)
    with _gate(folder):
        _check_overlap(mine, _held(folder, mine.cluster, mine.controller))
        handle = _acquired(path)
        if handle is None:
            raise _refusal(mine, None)
        try:
            os.ftruncate(handle, 0)
            files.write(handle, json.dumps(asdict(mine)).encode())
        except BaseException as error:
            locks.release(path, handle)
            if isinstance(error, OSError):
                raise _unusable("write", path, error) from error
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
    """Raise the Refused of `only_runner` early, without a lock: another run can still start after this check.

    It considers only runs with the same context. Behind a proxy several clusters may have one address, and only the
    cluster itself can tell which of them another context is.
    """
    others = runners(folder, cluster=mine.cluster, controller=mine.controller)
    _check_overlap(mine, [other for other in others if other.context == mine.context])


def _check_overlap(mine: Runner, others: Sequence[Runner]) -> None:
    for other in others:
        if other.overlaps(mine.scope):
            raise _refusal(mine, other)


def runners(folder: Path, *, cluster: str = "", controller: str = "") -> list[Runner]:
    """The runs on this machine that hold their lock; by default of all clusters and controllers."""
    if not (folder / "runners").is_dir():
        return []
    with ExitStack() as held:
        with suppress(CtrlError):  # if the gate cannot be created, no run can start either, so nothing can race
            held.enter_context(_gate(folder))
        return _held(folder, cluster, controller)


def ask_to_stop(folder: Path, runner: Runner) -> bool:
    """Send its process the first SIGTERM, so that reconciles finish; False if it is not a process of this machine."""
    if not holder.is_here(runner.holder):
        return False
    # The pidfd refers to the process that has the pid now; the lock, read after it, proves that it is the right one.
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


def note_asked(folder: Path, identity: str) -> None:
    """Note in its lock files that a process was asked to stop: a second signal would cancel its running reconciles.

    The sender writes this, because a busy process may do it much later.
    """
    if not (folder / "runners").is_dir():
        return
    with suppress(CtrlError, OSError), _gate(folder):  # a full disk must not prevent the stop
        for runner in _held(folder, "", ""):
            if runner.holder == identity and not runner.asked:
                _mark_asked(_path(folder, runner))


def _mark_asked(path: Path) -> None:
    """In one write, so that a kill leaves a readable file. Fields of a later version are kept."""
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
    """The gate must be held: this tries each lock for a moment, and must not be mistaken for its holder."""
    found = []
    for path in sorted((folder / "runners").glob("*.lock")):
        handle = _opened(path)
        if handle is None:
            continue
        try:
            free, runner = locks.lock(handle), _read(handle)
        finally:
            os.close(handle)
        if free:
            with suppress(OSError):
                path.unlink(missing_ok=True)  # a killed process left it
            continue
        runner = runner or _unreadable(path)
        if (not runner.cluster or cluster in ("", runner.cluster)) and controller in ("", runner.controller):
            found.append(runner)
    return found


def _unreadable(path: Path) -> Runner:
    """The holder of a lock file that cannot be read. Only its controller is known, from the name of the file.

    It could run on any cluster and in any namespace, so it overlaps with all of them.
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


def _opened(path: Path) -> int | None:
    """Open for writing if possible: some network file systems lock no other descriptors."""
    for mode in (os.O_RDWR, os.O_RDONLY):
        with suppress(OSError):
            return os.open(path, mode | os.O_CLOEXEC | os.O_NOFOLLOW)
    return None


def _read(handle: int) -> Runner | None:
    try:
        content = files.known(Runner, json.loads(os.pread(handle, _MOST, 0)))
        return Runner(**{**content, "controllers": tuple(content["controllers"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _acquired(path: Path, *, wait: bool = False) -> int | None:
    try:
        return locks.acquire(path, wait=wait)
    except OSError as error:
        raise _unusable("create or lock", path, error) from error


def _unusable(what: str, path: Path, error: OSError) -> CtrlError:
    return CtrlError(
        f"Cannot {what} the lock file {str(path)!r}: {error.strerror}.", next_step=files.state_remedy(error)
    )


def _refusal(mine: Runner, other: Runner | None) -> Refused:
    who = other.text if other else f"another process ({mine.where})"
    if other and other.unreadable:
        next_step = other.remedy
    elif other and mine.scope and not other.scope:
        next_step = "stop that run, which uses all namespaces"
    else:
        next_step = "stop that run, or select another namespace with -n"
    return Refused(f"{mine.controller} already runs here for this cluster: {who}.", next_step=next_step)
