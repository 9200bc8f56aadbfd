"""Commands that are suggested, as values: what stands in them is quoted for the shell in this one place.

A name in a recording or a path with a blank must be one word of the line that somebody copies, and nothing else.
"""

from __future__ import annotations

import shlex

from kubectl_ctrl.value import Value


class Command(Value):
    """A command to copy, or a part of one such as a flag with its value; its text is what a POSIX shell takes."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(self.words)


def command(*words: object) -> Command:
    """The command, or the part of one, of these words, which may be parts of one too."""
    parts = (word.words if isinstance(word, Command) else (str(word),) for word in words)
    return Command(tuple(word for part in parts for word in part))


def ctrl(*words: object) -> Command:
    """`kubectl ctrl` with these words."""
    return command("kubectl", "ctrl", *words)
