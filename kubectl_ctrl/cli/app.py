"""The process as verbs see it: streams, environment, and the width and colors of the terminal."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.model.masking import masked_text
from kubectl_ctrl.target.pin import Pin, as_typed
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Struct, field

if TYPE_CHECKING:
    from random import Random

    from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
    from kubectl_ctrl.client.client import Client
    from kubectl_ctrl.clock import Clock
    from kubectl_ctrl.clusters.registry import ClusterEntry, Registry
    from kubectl_ctrl.kubeconfig.resolution import Resolved
    from kubectl_ctrl.target.effect import CommandEffect

# kubectl runs this program for `kubectl ctrl`.
PROGRAM = "kubectl-ctrl"


class App(Struct, kw_only=True):
    """Everything outside the process that a verb uses; created once in `main`, and by tests."""

    out: TextIO
    err: TextIO
    user: User
    program: str = ""  # argv[0]
    color_flag: str = "auto"
    verbosity: int = 0
    machine: bool = False  # errors on stderr are JSON
    quiet: bool = False  # a run prints only reconciles and problems
    hide: Callable[[str], str] = masked_text  # masks secrets in a text; a verb may know more of them
    end: str = "Ctrl-C"  # what stops a run
    pin: Pin = field(default_factory=Pin)  # the flags of the selected cluster, for suggested commands
    general_error: int = 1  # exit code of errors without their own; 2 if 1 is a verdict

    @classmethod
    def of_this_process(cls) -> App:
        for stream in (sys.stdout, sys.stderr):
            # A character that the terminal's encoding lacks is printed as its code instead of raising an error.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        return cls(out=sys.stdout, err=sys.stderr, user=User(os.environ), program=sys.argv[0])

    def answer(self, text: str, end: str = "\n") -> None:
        """Print the result, or a line of it."""
        self.answer_all([text], end)

    def answer_all(self, texts: Iterable[str], end: str = "\n") -> None:
        """Print the parts of a result as they come; a plain str is one line, a Text is printed as it is laid out."""
        from kubectl_ctrl.text import printable  # completion answers without it

        try:
            self.out.writelines(f"{printable(text)}{end}" for text in texts)
            self.out.flush()
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.EIO):  # the reader of the pipe, or the terminal, is gone
                raise BrokenPipeError(error.errno, error.strerror) from error
            self.nobody_reads()
            raise CtrlError(
                f"Cannot write to standard output: {error.strerror}.",
                next_step="free disk space, or redirect the output",
            ) from error

    def narrate(self, text: str) -> None:
        """Print a line to stderr. A failure to do so does not stop the verb."""
        try:
            from kubectl_ctrl.text import printable

            print(self.as_called(printable(text)), file=self.err, flush=True)
        except OSError:
            _redirect_to_null(self.err)

    def as_called(self, text: str) -> str:
        """The text with commands as they work here: without kubectl in PATH, `kubectl-ctrl` for `kubectl ctrl`."""
        called_by_kubectl = Path(self.program).name != PROGRAM or self.user.environ.get("KUBECTL_PATH")
        if "kubectl ctrl " not in text or called_by_kubectl:
            return text
        from shutil import which

        kubectl = which("kubectl", path=self.user.environ.get("PATH", ""))
        return text if kubectl else text.replace("kubectl ctrl ", f"{PROGRAM} ")

    # The selected cluster. Each of these methods also makes suggested commands select it.

    def pointed(self, given: ParsedCommandLine) -> Resolved:
        """The cluster of kubectl's flags and the kubeconfig."""
        from kubectl_ctrl.target import choice

        self.pin = as_typed(
            given.saying("kubeconfig", "context", "cluster", "server", "user")
        )  # with the values of our variables, which kubectl does not know
        target = choice.pointed(self.user, given.cluster_flags)
        self.pin = target.pin or self.pin
        return target.resolved

    def pointed_at(self, entry: ClusterEntry) -> Resolved:
        """A managed cluster."""
        from kubectl_ctrl.target import choice

        target = choice.pointed_at(self.user, entry)
        self.pin = target.pin or self.pin
        return target.resolved

    def meant(self, given: ParsedCommandLine, effect: CommandEffect) -> Resolved:
        """The cluster of kubectl's flags and the kubeconfig; Refused if the guard forbids the effect."""
        from kubectl_ctrl.target import guard

        resolved = self.pointed(given)
        allow = given.flags.get("allow_context", "")
        guard.check(
            effect, resolved, allow=allow, standing=guard.standing_list(self.user.config_file), registry=self.registry
        )
        return resolved

    async def connected(self, resolved: Resolved, *, clock: Clock, rng: Random) -> Client:
        """A client with the user agent of kubectl-ctrl."""
        from kubectl_ctrl.target.connection import connected

        return await connected(self.user, resolved, clock=clock, rng=rng, interactive=self.interactive)

    def briefly(self, error: CtrlError) -> str:
        """An error as a part of another message: its message, and the next step if that is a command."""
        is_command = error.next_step.startswith("kubectl ")
        return f"{error.message} Next: {self.pin.into(error.next_step)}" if is_command else error.message

    def nobody_reads(self) -> None:
        """After a BrokenPipeError (`| head`): discard buffered and future output."""
        _redirect_to_null(self.out)

    @property
    def terminal(self) -> bool:
        return self.out.isatty()

    @property
    def interactive(self) -> bool:
        """Whether a user could answer a question of a credential plugin."""
        return sys.stdin is not None and sys.stdin.isatty()

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None if lines must not be truncated."""
        if not self.terminal:
            return None
        try:
            return os.get_terminal_size(self.out.fileno()).columns or 80
        except OSError:
            return 80

    @property
    def color(self) -> bool:
        """As cli-runtime decides: a terminal, TERM not dumb, NO_COLOR absent; the flag overrides."""
        if self.color_flag != "auto":
            return self.color_flag == "always"
        return (
            self.terminal
            and self.user.environ.get("TERM", "") not in ("", "dumb")
            and "NO_COLOR" not in self.user.environ
        )

    @property
    def unicode(self) -> bool:
        return self.draws(self.out)

    def draws(self, stream: TextIO) -> bool:
        """Whether the stream takes characters beyond ASCII."""
        encoding = (stream.encoding or "").lower().replace("-", "")
        # Python writes UTF-8 in the C locale too, but a user who chose that locale expects ASCII.
        plain = next(filter(None, map(self.user.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "") in ("C", "POSIX")
        return encoding == "utf8" and not plain and self.user.environ.get("TERM") != "dumb"

    @property
    def registry(self) -> Registry:
        """The registry of managed clusters."""
        from kubectl_ctrl.clusters.registry import Registry

        return Registry.of(self.user)


def _redirect_to_null(stream: TextIO) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
