"""Suggested commands, quoted for the shell.

Any name or path, also one with spaces or quotes, must be exactly one argument of the command that the user copies.
"""

from __future__ import annotations

import shlex

from kubectl_ctrl.value import Value


class Command(Value):
    """A command, or a part of one such as a flag with its value; `str()` quotes it for a POSIX shell."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(self.words)


def command(*words: object) -> Command:
    """The command of these arguments, or of parts of commands."""
    parts = (word.words if isinstance(word, Command) else (str(word),) for word in words)
    return Command(tuple(word for part in parts for word in part))


def ctrl(*words: object) -> Command:
    """`kubectl ctrl` with these arguments."""
    return command("kubectl", "ctrl", *words)
