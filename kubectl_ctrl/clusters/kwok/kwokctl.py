"""Running kwokctl for one cluster: what it may know of this machine, what it says, and whether its servers live.

kwokctl starts servers and does not look whether they stay: one that ends at once leaves it waiting for minutes, after
which it reports success. So they are watched here, and the log of the one that ended says why.
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
from kubectl_ctrl.clusters import programs
from kubectl_ctrl.clusters.kwok import ports
from kubectl_ctrl.clusters.provider import Machine, Note, recreate
from kubectl_ctrl.clusters.registry import Entry
from kubectl_ctrl.errors import ClusterError, CtrlError, PrerequisiteMissing, ProgramFailed, TimedOut
from kubectl_ctrl.exec import run

T = TypeVar("T")

# What a download may need of the user's environment. Nothing else of it is for kwokctl: neither PATH nor KUBECONFIG,
# and no KWOK_ variable, which would all be options that nobody asked for here.
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PACE = 0.3
_TAIL = 40  # lines of a log that an error keeps
_MORE = "-v 1 shows its full output; --keep-on-failure keeps the cluster for inspection"
_PLAIN = re.compile(r"[A-Za-z0-9/._-]+")
# In the order in which they need each other: the first one that ended is to blame.
_ORDER = ("etcd", "kube-apiserver")
_FULL = "no space left on device"
_ROOM = 1 << 16  # bytes; whoever has less cannot work
_TAKEN = re.compile(r"listen tcp (\S+): bind: address already in use")
_FETCHING = re.compile(r'Get "([^"]+)": (.+)', re.DOTALL)
_UNFIT = re.compile(r"fork/exec (.+): (exec format error|permission denied|no such file or directory)")
_FATAL = ("fatal", "panic")  # levels of a log in JSON
_REASONS = (
    re.compile(r'^[EF]\d{4} .*"command failed" err="((?:[^"\\]|\\.)*)"', re.MULTILINE),
    re.compile(r"^(?:Error|panic|fatal error): (.+)$", re.MULTILINE),
)


class PortTaken(ClusterError):
    """Somebody took a port between our look and the server's start."""


class Kwokctl:
    """kwokctl, bound to one cluster's folder."""

    def __init__(self, entry: Entry, machine: Machine) -> None:
        self.name = entry.name
        self.folder = entry.folder.resolve()
        self._machine = machine

    def __repr__(self) -> str:
        return f"Kwokctl({str(self.folder)!r})"

    @property
    def way(self) -> Path:
        """The folder by a path that kwokctl can take: it cuts or rewrites one with blanks and other characters."""
        if _PLAIN.fullmatch(str(self.folder)):
            return self.folder
        name = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path(f"/tmp/kubectl-ctrl-{os.getuid()}", name)  # noqa: S108  # checked where it is made

    @property
    def root(self) -> Path:
        """KWOK_WORKDIR."""
        return self.way / "kwok"

    @property
    def work(self) -> Path:
        """All that kwokctl keeps of this cluster, by a path that stays: the way may be cleared away."""
        return self.folder / "kwok" / "clusters" / self.name

    @property
    def state(self) -> Path:
        """What kwokctl knows of the cluster: its parts, their programs and ports."""
        return self.work / "kwok.yaml"

    @property
    def config(self) -> Path:
        return self.root / "kwokctl.yaml"

    @property
    def kubeconfig(self) -> Path:
        return self.work / "kubeconfig.yaml"

    def prepare(self) -> None:
        """Have the way to the folder; a restart of the machine takes it away. OSError where that cannot be."""
        if self.way != self.folder:
            _private(self.way.parent)
            programs.link(self.way, self.folder)

    def linked(self, name: str, target: Path) -> Path:
        """`bin/NAME` in the folder, as kwokctl can take it."""
        programs.link(self.folder / "bin" / name, target)
        return self.way / "bin" / name

    async def alive(self) -> set[str]:
        """The servers that run; they were started by the way."""
        return {process.program for process in await processes.running(self.root / "clusters" / self.name, links=False)}

    async def end(self) -> None:
        """End all processes; whether the way is still there, or leads elsewhere, does not matter to what it started."""
        for place in {self.folder, self.way}:
            await processes.kill_all(place, self._machine.clock, links=False)

    def clear(self) -> None:
        """Remove all that was made here, and nothing that links lead to. OSError where that cannot be."""
        for path in (self.folder / "kwok", self.folder / "bin"):
            if path.is_dir():
                shutil.rmtree(path)
        ports.forget(self.folder)
        if self.way != self.folder:
            # It may be somebody else's by now, and its folder another cluster's, too.
            with suppress(OSError):
                self.way.unlink(missing_ok=True)
                self.way.parent.rmdir()

    async def run(self, *words: str, note: Note, timeout: float | None) -> None:
        argv = [str(self.way / "bin" / "kwokctl"), *words, "--name", self.name]
        env = environ(self.root, self._machine.environ, path=self.way / "bin")
        try:
            await run(argv, timeout=timeout, env=env, heard=lambda line: _tell(line, note))
        except ProgramFailed as error:
            raise failed(error, self.name) from error

    async def while_alive(self, work: Coroutine[object, object, T]) -> T:
        """What `work` gives, unless a server of the cluster ends meanwhile: then a ClusterError, at once."""
        doing, watching = asyncio.ensure_future(work), asyncio.ensure_future(self._one_ended())
        try:
            await asyncio.wait((doing, watching), return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
            raise self._obituary(watching.result())
        finally:
            for task in (doing, watching):
                task.cancel()
            await asyncio.gather(doing, watching, return_exceptions=True)

    async def _one_ended(self) -> str:
        while True:
            # In this order: its number is written after it was started.
            numbers = {file.stem: file for file in (self.work / "pids").glob("*.pid")}
            alive = await self.alive()
            # One that a script starts is not known by its path before it has become what it is to be.
            if ended := [part for part, file in numbers.items() if part not in alive and _has_ended(file)]:
                return min(ended, key=lambda part: (_ORDER.index(part) if part in _ORDER else len(_ORDER), part))
            await self._machine.clock.sleep(_PACE)

    def _obituary(self, part: str) -> ClusterError:
        log = self.work / "logs" / f"{part}.log"
        text, full = "", False
        with suppress(OSError):
            text = log.read_text(errors="replace")
            # It takes no last words either.
            full = not text.endswith("\n") and shutil.disk_usage(log).free < _ROOM
        return ended(part, self.name, text, full=full)


def _has_ended(file: Path) -> bool:
    """Whether the process is gone whose number that is; a file without one is just being written, or taken away."""
    with suppress(OSError, ValueError):
        return processes.has_exited(int(file.read_text()))
    return False


def _private(folder: Path) -> None:
    """A folder that nobody else can put anything into, in one that is everybody's."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(errno.EPERM, "other users can write to that folder", str(folder))


def environ(root: Path, given: Mapping[str, str], *, path: Path) -> dict[str, str]:
    """kwokctl's environment; on PATH it looks for a kubectl before it downloads one."""
    network = {key: value for key, value in given.items() if key.upper() in _NETWORK}
    return {**network, "PATH": str(path), "HOME": str(root / "home"), "KWOK_WORKDIR": str(root)}


def _tell(line: str, note: Note) -> None:
    fields = programs.fields(line)
    if fields.get("msg") == "Download":
        note(f"downloading {fields.get('uri', '')}")


def failed(error: ProgramFailed, name: str) -> CtrlError:
    """What kwokctl complained of; it writes a JSON object per line, and its last error is why it ended."""
    if error.outcome.startswith("did not exit"):
        late = TimedOut(f"The control plane of cluster {name!r} does not work: kwokctl {error.outcome}.")
        late.output, late.last_words = error.stderr, programs.last_words(error.stderr, late.message)
        return late
    told = [programs.fields(line) for line in error.stderr.splitlines()]
    why = next((str(fields["err"]) for fields in reversed(told) if fields.get("err")), "")
    last = error.stderr.strip().splitlines()[-1:]
    said = why.strip() or "".join(last) or error.outcome
    if fetching := _FETCHING.match(said):
        return PrerequisiteMissing(
            f"kwokctl cannot download {fetching[1]}: {fetching[2]}.",
            next_step="use a folder with the programs (--bin-dir DIR), or check the network (HTTPS_PROXY is used)",
        )
    if unfit := _UNFIT.search(said):
        path = Path(unfit[1])
        return PrerequisiteMissing(
            f"{path.name} cannot be run: {unfit[2]}.",
            tried=os.path.realpath(path),
            next_step="use a folder with programs for this system: --bin-dir DIR",
        )
    return _error(f"kwokctl failed for cluster {name!r}", said, error.stderr, name, explained=bool(why))


def ended(part: str, name: str, log: str, *, full: bool = False) -> ClusterError:
    """A server that ended by itself, and the last reason in its log, or on the disk."""
    found = _reason(log)
    last = programs.told("".join(log.strip().splitlines()[-1:]))
    said = _FULL if full or _FULL in log else found or last or "its log is empty"
    tail = "\n".join(log.splitlines()[-_TAIL:])
    return _error(f"{part} of cluster {name!r} exited", said, tail, name, explained=bool(found))


def _reason(log: str) -> str:
    for line in reversed(log.splitlines()):
        if programs.fields(line).get("level") in _FATAL:
            return programs.told(line)
    found = next((matches[-1] for pattern in _REASONS if (matches := pattern.findall(log))), "")
    return found.replace('\\"', '"')


def _error(what: str, said: str, output: str, name: str, *, explained: bool) -> ClusterError:
    """`said` is the reason where that is known, else the last line."""
    if _FULL in said:
        return ClusterError(
            f"{what}: the disk is full.",
            next_step="free disk space, or set XDG_STATE_HOME to a folder on another disk",
            output=output,
        )
    if taken := _TAKEN.search(said):
        return PortTaken(
            f"{what}: another program uses {taken[1]}.",
            next_step=f"stop that program, or recreate the cluster with other ports: {recreate(name)}",
            output=output,
        )
    message = f"{what}: {said.rstrip('.')}."
    last = () if explained else programs.last_words(output, message)
    return ClusterError(message, next_step=_MORE, output=output, last_words=last)
