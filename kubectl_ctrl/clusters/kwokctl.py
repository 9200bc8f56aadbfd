"""Running kwokctl for one cluster: what it may know of this machine, what it says, and whether its servers live.

kwokctl starts servers and does not look whether they stay: one that ends at once leaves it waiting for minutes, after
which it reports success. So they are watched here, and the log of the one that ended says why.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from kubectl_ctrl.clusters import processes
from kubectl_ctrl.clusters.book import Entry
from kubectl_ctrl.clusters.provider import Machine, Note
from kubectl_ctrl.errors import ClusterError, ProgramFailed
from kubectl_ctrl.exec import run

T = TypeVar("T")

# What a download may need of the user's environment. Nothing else of it is for kwokctl: neither PATH nor KUBECONFIG,
# and no KWOK_ variable, which would all be options that nobody asked for here.
_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PACE = 0.3
_TAIL = 40  # lines of a log that an error keeps
# In the order in which they need each other: the first one that ended is to blame.
_ORDER = ("etcd", "kube-apiserver")
_FULL = "no space left on device"
_TAKEN = re.compile(r"listen tcp (\S+): bind: address already in use")
_REASONS = (
    re.compile(r'^{"level":"(?:fatal|panic)".*"error":"((?:[^"\\]|\\.)*)"', re.MULTILINE),
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
    def root(self) -> Path:
        """KWOK_WORKDIR."""
        return self.folder / "kwok"

    @property
    def work(self) -> Path:
        """All that kwokctl keeps of this cluster."""
        return self.root / "clusters" / self.name

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

    async def run(self, *words: str, note: Note, timeout: float | None) -> None:
        argv = [str(self.folder / "bin" / "kwokctl"), *words, "--name", self.name]
        env = environ(self.root, self._machine.environ, path=self.folder / "bin")
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
            started = {file.stem for file in (self.work / "pids").glob("*.pid")}
            ended = started - {process.program for process in await processes.running(self.work)}
            if ended:
                return min(ended, key=lambda part: (_ORDER.index(part) if part in _ORDER else len(_ORDER), part))
            await self._machine.clock.sleep(_PACE)

    def _obituary(self, part: str) -> ClusterError:
        log = self.work / "logs" / f"{part}.log"
        text = ""
        with suppress(OSError):
            text = log.read_text(errors="replace")
        return ended(part, self.name, text)


def environ(root: Path, given: Mapping[str, str], *, path: Path) -> dict[str, str]:
    """kwokctl's environment; on PATH it looks for a kubectl before it downloads one."""
    network = {key: value for key, value in given.items() if key.upper() in _NETWORK}
    return {**network, "PATH": str(path), "HOME": str(root / "home"), "KWOK_WORKDIR": str(root)}


def _tell(line: str, note: Note) -> None:
    fields = _fields(line)
    if fields.get("msg") == "Download":
        note(f"downloading {fields.get('uri', '')}")


def _fields(line: str) -> Mapping[str, object]:
    with suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return {}


def failed(error: ProgramFailed, name: str) -> ClusterError:
    """What kwokctl complained of; it writes a JSON object per line, and its last error is why it ended."""
    told = [_fields(line) for line in error.stderr.splitlines()]
    why = next((str(fields["err"]) for fields in reversed(told) if fields.get("err")), "")
    last = error.stderr.strip().splitlines()[-1:]
    said = why.strip() or "".join(last) or error.outcome
    return _error(f"kwokctl could not do it for cluster {name!r}", said, error.stderr, name)


def ended(part: str, name: str, log: str) -> ClusterError:
    """A server that ended by itself, and the last reason in its log."""
    found = next((matches[-1] for pattern in _REASONS if (matches := pattern.findall(log))), "")
    last = "".join(log.strip().splitlines()[-1:])
    said = log if _FULL in log else found.replace('\\"', '"') or last or "its log is empty"
    tail = "\n".join(log.splitlines()[-_TAIL:])
    return _error(f"{part} of cluster {name!r} ended", said, tail, name)


def _error(what: str, said: str, output: str, name: str) -> ClusterError:
    if _FULL in said:
        return ClusterError(
            f"{what}: the disk is full.",
            next_step="make room, or set XDG_STATE_HOME to a folder on another disk",
            output=output,
        )
    if taken := _TAKEN.search(said):
        return PortTaken(
            f"{what}: another program has {taken[1]}.",
            next_step=f"end that program, or have other ports chosen: kubectl ctrl down {name}, then up again",
            output=output,
        )
    return ClusterError(f"{what}: {said.rstrip('.')}.", next_step="-v shows all that it said", output=output)
