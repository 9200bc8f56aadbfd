"""Runs kwokctl for one cluster, explains its errors, and watches the servers that it starts.

kwokctl does not notice when a server exits: it waits for minutes and then reports success. So the servers are watched
here, and the error contains the reason from the log of the one that exited.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from kubectl_ctrl import processes
from kubectl_ctrl.client.words import plain, sentence
from kubectl_ctrl.clusters import ports, programs
from kubectl_ctrl.clusters.provider import Machine, Note, recreate
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.errors import ClusterError, CtrlError, PrerequisiteMissing, ProgramFailed, TimedOut
from kubectl_ctrl.exec import run

T = TypeVar("T")

# The variables that a download may need. kwokctl gets nothing else of the user's environment: no PATH or KUBECONFIG,
# and no KWOK_ variables, which are options that nobody passed here.
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PACE = 0.3
_TAIL = 40  # lines of a log in an error
_LONGEST = 200  # characters of a reason in the first line of an error
_MORE = "-v 1 shows its full output; --keep-on-failure keeps the cluster for inspection"
_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
# Each server needs those before it, so the first one that exited is the cause.
_ORDER = ("etcd", "kube-apiserver")
_FULL = "no space left on device"
_ROOM = 1 << 16  # bytes; a disk with less is full
_TAKEN = re.compile(r"listen tcp (\S+): bind: address already in use")
_FETCHING = re.compile(r'Get "([^"]+)": (.+)', re.DOTALL)
_UNFIT = re.compile(r"fork/exec (.+): (exec format error|permission denied|no such file or directory)")
_FATAL = ("fatal", "panic")  # levels of a log in JSON
_REASONS = (
    re.compile(r'^[EF]\d{4} .*"command failed" err="((?:[^"\\]|\\.)*)"', re.MULTILINE),
    re.compile(r"^(?:Error|panic|fatal error): (.+)$", re.MULTILINE),
)


class PortTaken(ClusterError):
    """Another program took a port after it was found free and before the server started."""


class Kwokctl:
    def __init__(self, entry: ClusterEntry, machine: Machine) -> None:
        self.name = entry.name
        self.folder = entry.folder.resolve()
        self._machine = machine

    def __repr__(self) -> str:
        return f"Kwokctl({str(self.folder)!r})"

    @property
    def alias(self) -> Path:
        """A path of the folder that kwokctl supports: it cuts or rewrites a path with spaces or special characters."""
        if _PLAIN.fullmatch(str(self.folder)):
            return self.folder
        name = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path(f"/tmp/kubectl-ctrl-{os.getuid()}", name)  # noqa: S108  # `prepare` checks its owner

    @property
    def root(self) -> Path:
        """KWOK_WORKDIR."""
        return self.alias / "kwok"

    @property
    def work(self) -> Path:
        """kwokctl's folder of this cluster, by the path that lasts: a restart of the machine deletes the alias."""
        return self.folder / "kwok" / "clusters" / self.name

    @property
    def state(self) -> Path:
        """kwokctl's file about the cluster: its components, their programs and ports."""
        return self.work / "kwok.yaml"

    @property
    def config(self) -> Path:
        return self.root / "kwokctl.yaml"

    @property
    def kubeconfig(self) -> Path:
        return self.work / "kubeconfig.yaml"

    def prepare(self) -> None:
        """Create the alias; a restart of the machine deletes it. May raise OSError."""
        if self.alias == self.folder:
            return
        parent = self.alias.parent
        parent.mkdir(mode=0o700, exist_ok=True)
        found = parent.lstat()
        # /tmp is writable for everybody: another user could own that folder, and replace the programs that we start.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(errno.EPERM, "other users can write to that folder", str(parent))
        programs.link(self.alias, self.folder)

    def linked(self, name: str, target: Path) -> Path:
        """A link `bin/NAME` in the folder, as a path below the alias."""
        programs.link(self.folder / "bin" / name, target)
        return self.alias / "bin" / name

    async def alive(self) -> set[str]:
        """The running servers; they were started through the alias."""
        return {process.program for process in await processes.running(self.root / "clusters" / self.name, links=False)}

    async def stop(self) -> None:
        """Stop all processes. They are found by both paths, even if the alias is gone or points elsewhere by now."""
        for place in {self.folder, self.alias}:
            await processes.kill_all(place, self._machine.clock, links=False)

    def clear(self) -> None:
        """Delete everything that was created here, but no target of a link. May raise OSError."""
        for path in (self.folder / "kwok", self.folder / "bin"):
            if path.is_dir():
                shutil.rmtree(path)
        ports.forget(self.folder)
        if self.alias != self.folder:
            # Somebody else may own the alias by now, and aliases of other clusters keep its parent.
            with suppress(OSError):
                self.alias.unlink(missing_ok=True)
                self.alias.parent.rmdir()

    async def run(self, *words: str, note: Note, timeout: float | None) -> None:
        argv = [str(self.alias / "bin" / "kwokctl"), *words, "--name", self.name]
        env = environ(self.root, self._machine.environ, path=self.alias / "bin")

        def heard(line: str) -> None:
            fields = programs.fields(line)
            if fields.get("msg") == "Download":
                note(f"downloading {fields.get('uri', '')}")

        try:
            await run(argv, timeout=timeout, env=env, heard=heard)
        except ProgramFailed as error:
            raise failed(error, self.name) from error

    async def while_alive(self, work: Coroutine[object, object, T]) -> T:
        """The result of `work`; raises ClusterError as soon as a server of the cluster exits."""
        doing, watching = asyncio.ensure_future(work), asyncio.ensure_future(self._first_exited())
        try:
            await asyncio.wait((doing, watching), return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
            raise self._exit_error(watching.result())
        finally:
            for task in (doing, watching):
                task.cancel()
            await asyncio.gather(doing, watching, return_exceptions=True)

    async def _first_exited(self) -> str:
        while True:
            # In this order: a server that starts after the files were read is not among them, so it is not taken for
            # one that exited.
            pids = {file.stem: file for file in (self.work / "pids").glob("*.pid")}
            alive = await self.alive()
            # A server that is started by a script has another path until it has replaced the script. So a missing
            # path is not enough: its process must be gone too.
            if exited := [part for part, file in pids.items() if part not in alive and _is_gone(file)]:
                return min(exited, key=lambda part: (_ORDER.index(part) if part in _ORDER else len(_ORDER), part))
            await self._machine.clock.sleep(_PACE)

    def _exit_error(self, part: str) -> ClusterError:
        log = self.work / "logs" / f"{part}.log"
        text, full = "", False
        with suppress(OSError):
            text = log.read_text(errors="replace")
            # On a full disk the log ends in the middle of a line, before the reason.
            full = not text.endswith("\n") and shutil.disk_usage(log).free < _ROOM
        return exited(part, self.name, text, full=full)


def _is_gone(pid_file: Path) -> bool:
    """False for a file without a number too: it is being written or deleted."""
    with suppress(OSError, ValueError):
        return processes.has_exited(int(pid_file.read_text()))
    return False


def environ(root: Path, given: Mapping[str, str], *, path: Path) -> dict[str, str]:
    """kwokctl's environment; it searches PATH for kubectl before it downloads one."""
    network = {key: value for key, value in given.items() if key.upper() in _NETWORK}
    return {**network, "PATH": str(path), "HOME": str(root / "home"), "KWOK_WORKDIR": str(root)}


def failed(error: ProgramFailed, name: str) -> CtrlError:
    """The error for a kwokctl that failed. It prints a JSON object per line; the last error in them is the cause."""
    if error.outcome.startswith("did not exit"):
        late = TimedOut(f"The control plane of cluster {name!r} does not work: kwokctl {error.outcome}.")
        late.output, late.last_words = error.stderr, programs.last_words(error.stderr, late.message)
        return late
    lines = [programs.fields(line) for line in error.stderr.splitlines()]
    cause = next((str(fields["err"]) for fields in reversed(lines) if fields.get("err")), "")
    last = error.stderr.strip().splitlines()[-1:]
    reason = cause.strip() or "".join(last) or error.outcome
    if fetching := _FETCHING.match(reason):
        return PrerequisiteMissing(
            f"kwokctl cannot download {fetching[1]}: {plain(fetching[2], _LONGEST)}.",
            next_step="use a folder with the programs (--bin-dir DIR), or check the network (HTTPS_PROXY is used)",
        )
    if unfit := _UNFIT.search(reason):
        path = Path(unfit[1])
        return PrerequisiteMissing(
            f"{path.name} cannot be run: {unfit[2]}.",
            tried=os.path.realpath(path),
            next_step="use a folder with programs for this system: --bin-dir DIR",
        )
    return _error(f"kwokctl failed for cluster {name!r}", reason, error.stderr, name, explained=bool(cause))


def exited(part: str, name: str, log: str, *, full: bool = False) -> ClusterError:
    """The error for a server that exited by itself, with the last reason in its log."""
    found = _reason(log)
    last = programs.message_of("".join(log.strip().splitlines()[-1:]))
    reason = _FULL if full or _FULL in log else found or last or "its log is empty"
    tail = "\n".join(log.splitlines()[-_TAIL:])
    return _error(f"{part} of cluster {name!r} exited", reason, tail, name, explained=bool(found))


def _reason(log: str) -> str:
    for line in reversed(log.splitlines()):
        if programs.fields(line).get("level") in _FATAL:
            return programs.message_of(line)
    found = next((matches[-1] for pattern in _REASONS if (matches := pattern.findall(log))), "")
    return found.replace('\\"', '"')


def _error(what: str, reason: str, output: str, name: str, *, explained: bool) -> ClusterError:
    """An unexplained reason is only the last line of the output; then the lines before it are shown too."""
    if _FULL in reason:
        return ClusterError(
            f"{what}: the disk is full.",
            next_step="free disk space, or set XDG_STATE_HOME to a folder on another disk",
            output=output,
        )
    if taken := _TAKEN.search(reason):
        return PortTaken(
            f"{what}: another program uses {taken[1]}.",
            next_step=f"stop that program, or recreate the cluster with other ports: {recreate(name)}",
            output=output,
        )
    first = reason.partition("\n")[0].rstrip(".")
    short = plain(first, _LONGEST)
    message = f"{what}: {sentence(short)}"
    if not explained:
        last = programs.last_words(output, message)
    else:
        last = () if short == reason.rstrip(".") else programs.last_words(reason, message)
    return ClusterError(message, next_step=_MORE, output=output, last_words=last)
