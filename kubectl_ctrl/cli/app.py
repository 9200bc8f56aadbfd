"""The process seen from a verb: streams, environment, and how wide and colourful the terminal is."""

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

    from kubectl_ctrl.cli.parsing.verb import Given
    from kubectl_ctrl.client.client import Client
    from kubectl_ctrl.clock import Clock
    from kubectl_ctrl.clusters.registry import Entry, Registry
    from kubectl_ctrl.kubeconfig.resolution import Resolved
    from kubectl_ctrl.target.effect import Effect

# What kubectl finds for `kubectl ctrl`.
PROGRAM = "kubectl-ctrl"


class App(Struct, kw_only=True):
    """What a verb may touch of the outside; made once in `main`, and by tests."""

    out: TextIO
    err: TextIO
    user: User
    program: str = ""  # as which we were called
    color_flag: str = "auto"
    verbosity: int = 0
    machine: bool = False  # stderr is read by a machine too
    quiet: bool = False  # of a run, nothing is told beside what it does and what goes wrong
    hide: Callable[[str], str] = masked_text  # takes out of a text what must not be seen: a verb may know more of that
    end: str = "Ctrl-C"  # how somebody ends what would go on for ever
    pin: Pin = field(default_factory=Pin)  # what commands that are suggested need, to mean the cluster that is meant
    general_error: int = 1  # exit code of errors that have none of their own; 2 where 1 is a verdict

    @classmethod
    def of_this_process(cls) -> App:
        for stream in (sys.stdout, sys.stderr):
            # What a terminal's encoding lacks is shown by its number; a line is never lost for it.
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
            if error.errno in (errno.EPIPE, errno.EIO):  # a pipe, or a terminal, at which nobody is any more
                raise BrokenPipeError(error.errno, error.strerror) from error
            self.nobody_reads()
            raise CtrlError(
                f"Cannot write to standard output: {error.strerror}.",
                next_step="free disk space, or redirect the output",
            ) from error

    def narrate(self, text: str) -> None:
        """What is worth knowing beside the answer; that it cannot be said is no reason to stop."""
        try:
            from kubectl_ctrl.text import printable

            print(self.as_called(printable(text)), file=self.err, flush=True)
        except OSError:
            _lead_nowhere(self.err)

    def as_called(self, text: str) -> str:
        """With commands of ours as they can be typed here: where there is no kubectl, nothing knows `kubectl ctrl`."""
        return text.replace("kubectl ctrl ", f"{PROGRAM} ") if "kubectl ctrl " in text and self._alone else text

    @property
    def _alone(self) -> bool:
        if Path(self.program).name != PROGRAM or self.user.environ.get("KUBECTL_PATH"):
            return False
        from shutil import which

        return which("kubectl", path=self.user.environ.get("PATH", "")) is None

    # The cluster that a command addresses. From here on, commands that are suggested address it too.

    def pointed(self, given: Given) -> Resolved:
        """The cluster of kubectl's flags and the kubeconfig."""
        from kubectl_ctrl.target import choice

        self.pin = as_typed(
            given.saying("kubeconfig", "context", "cluster", "server", "user")
        )  # kubectl does not know our variables
        target = choice.pointed(self.user, given.cluster_flags)
        self.pin = target.pin or self.pin
        return target.resolved

    def pointed_at(self, entry: Entry) -> Resolved:
        """A cluster of ours."""
        from kubectl_ctrl.target import choice

        target = choice.pointed_at(self.user, entry)
        self.pin = target.pin or self.pin
        return target.resolved

    def meant(self, given: Given, effect: Effect) -> Resolved:
        """The cluster of kubectl's flags and the kubeconfig; Refused where the verb may not have that effect on it."""
        from kubectl_ctrl.target import guard

        resolved = self.pointed(given)
        allow = given.flags.get("allow_context", "")
        guard.check(
            effect, resolved, allow=allow, standing=guard.standing_list(self.user.config_file), registry=self.registry
        )
        return resolved

    async def connected(self, resolved: Resolved, *, clock: Clock, rng: Random) -> Client:
        """A client of it, under our name."""
        from kubectl_ctrl.target.connection import connected

        return await connected(self.user, resolved, clock=clock, rng=rng, interactive=self.interactive)

    def briefly(self, error: CtrlError) -> str:
        """An error as a part of something else that is told: what failed, and the command that helps where one does."""
        helps = error.next_step.startswith("kubectl ")
        return f"{error.message} Next: {self.pin.into(error.next_step)}" if helps else error.message

    def nobody_reads(self) -> None:
        """After a BrokenPipeError (`| head`): what is buffered, and what is still to come, has nowhere to go."""
        _lead_nowhere(self.out)

    @property
    def terminal(self) -> bool:
        return self.out.isatty()

    @property
    def interactive(self) -> bool:
        """Whether somebody could answer a question of a credential plugin."""
        return sys.stdin is not None and sys.stdin.isatty()

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None when lines must not be cut."""
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
        """Whether more than ASCII may go there."""
        encoding = (stream.encoding or "").lower().replace("-", "")
        # Python writes UTF-8 in the C locale too, which was chosen by somebody who reads something else.
        plain = next(filter(None, map(self.user.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "") in ("C", "POSIX")
        return encoding == "utf8" and not plain and self.user.environ.get("TERM") != "dumb"

    @property
    def registry(self) -> Registry:
        """Which clusters are ours."""
        from kubectl_ctrl.clusters.registry import Registry

        return Registry.of(self.user)


def _lead_nowhere(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
