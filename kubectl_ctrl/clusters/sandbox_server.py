"""The process of a sandbox: started from a folder, for a managed cluster or for one command."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kubectl_ctrl import exec as programs
from kubectl_ctrl import files
from kubectl_ctrl.clock import Clock, pause
from kubectl_ctrl.errors import ClusterError, CtrlError, TimedOut
from kubectl_ctrl.value import Value

MODULE = "kubectl_ctrl.sandbox"
START = 60.0  # seconds until a process that was started serves
_PACE = 0.05
_STOP = 5.0  # seconds from the end of its input to SIGKILL
_TAIL = 20  # lines of the log in an error


class SandboxServer(Value, kw_only=True):
    """A server to be started in a folder."""

    folder: Path
    context: str  # in its kubeconfig
    owner: str  # in errors: "cluster 'ctrl'"
    remedy: str = "-v 1 shows its full output"
    keeps_log: bool = True  # after an error

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def log(self) -> Path:
        return self.folder / "kube-apiserver.log"

    @property
    def _tried(self) -> str:
        return str(self.log) if self.keeps_log else ""

    async def start(
        self, *options: str, clock: Clock, environ: Mapping[str, str], patience: float = START, stdin: int | None = None
    ) -> int:
        """Start the process, and return its pid when it serves: then it has written its kubeconfig."""
        python, env = programs.python(environ)
        self.kubeconfig.unlink(missing_ok=True)
        logged = self.log.stat().st_size if self.log.exists() else 0
        argv = [*python, "-m", MODULE, str(self.folder), "--name", self.context, *options]
        pid = programs.detached(argv, env=env, output=self.log, stdin=stdin)
        end = clock.elapsed() + patience
        while not self.kubeconfig.exists():
            if programs.has_ended(pid):
                raise self.exited(logged)
            if clock.elapsed() >= end:
                raise self._silent(logged)
            await clock.sleep(_PACE)
        return pid

    def exited(self, logged: int = 0) -> ClusterError:
        lines = self._lines(logged)
        last = next((line for line in reversed(lines) if line.strip()), "its log is empty")
        return ClusterError(
            f"The API server of {self.owner} exited: {last.rstrip('.')}.",
            tried=self._tried,
            next_step=self.remedy,
            output="\n".join(lines),
        )

    def _silent(self, logged: int) -> TimedOut:
        error = TimedOut(f"The API server of {self.owner} does not answer.", tried=self._tried, next_step=self.remedy)
        error.output = "\n".join(self._lines(logged))
        return error

    def _lines(self, logged: int) -> list[str]:
        """The last lines of the log since this size."""
        with self.log.open("rb") as file:
            file.seek(logged)
            return file.read().decode(errors="replace").splitlines()[-_TAIL:]


class TemporarySandbox:
    """A sandbox in a private folder, until `end`.

    Its server stops, and deletes the folder, when this process exits for whatever reason: a pipe to it closes then.
    """

    def __init__(self) -> None:
        try:
            folder = Path(tempfile.mkdtemp(prefix="kubectl-ctrl-sandbox-"))  # mode 0700
        except OSError as error:
            raise CtrlError(
                f"No temporary folder can be created: {error.strerror}.",
                next_step=f"{files.remedy(error) or 'make it writable'}, or set TMPDIR to another folder",
            ) from error
        self.server = SandboxServer(folder=folder, context="sandbox", owner="the sandbox", keeps_log=False)
        self._pid: int | None = None
        self._stdin, self._open = os.pipe()

    def __repr__(self) -> str:
        return f"TemporarySandbox({str(self.server.folder)!r})"

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment of its clients. kubectl's caches are its own: a later server may have the same port."""
        return {"KUBECONFIG": str(self.server.kubeconfig), "KUBECACHEDIR": str(self.server.folder / "cache")}

    async def start(self, *options: str, clock: Clock, environ: Mapping[str, str]) -> None:
        self._pid = await self.server.start("--temporary", *options, clock=clock, environ=environ, stdin=self._stdin)

    def has_ended(self) -> bool:
        return self._pid is None or programs.has_ended(self._pid)

    def end(self) -> None:
        """Stop the server and delete the folder."""
        os.close(self._open)
        os.close(self._stdin)
        for _ in range(int(_STOP / _PACE)):
            if self.has_ended():
                break
            pause(_PACE)
        else:
            with suppress(ProcessLookupError):
                os.kill(self._pid or 0, signal.SIGKILL)
        shutil.rmtree(self.server.folder, ignore_errors=True)
