"""The progress of long work, as the code that does the work reports it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from kubectl_ctrl.clusters.provider import Note
from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.runs.holder import is_stopped
from kubectl_ctrl.value import Struct


class Step(Protocol):
    """One step; `text` becomes its result, and `doubtful` marks a result that is not as it should be."""

    text: str
    doubtful: bool

    def note(self, line: str) -> None:
        """Report what happens right now."""


class Steps(Protocol):
    def step(self, name: str, text: str, *, error_tells: bool = False) -> AbstractContextManager[Step]:
        """One step, for the block; it fails when the block raises. With `error_tells` the error alone reports that."""

    def skip(self, name: str, text: str) -> None: ...

    def say(self, text: str) -> None:
        """Report something that belongs to no step."""

    def warn(self, text: str) -> None:
        """The same, also for a user who wants only results and errors."""


class SilentStep(Struct):
    text: str
    doubtful: bool = False

    def note(self, line: str) -> None:
        pass


class Silent:
    """Reports no steps, but everything that belongs to none."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = self.warn = say

    def step(self, name: str, text: str, *, error_tells: bool = False) -> AbstractContextManager[Step]:
        return nullcontext(SilentStep(text))

    def skip(self, name: str, text: str) -> None:
        pass


def waiting(registry: Registry, name: str, steps: Steps) -> Note:
    """Reports which process changes that cluster; one that was stopped with Ctrl-Z would be waited for in vain."""

    def say(text: str) -> None:
        pid = registry.holder(name)
        if pid is not None and is_stopped(pid):
            text += f"; that process is stopped (Ctrl-Z): continue it with fg in its terminal, or kill -CONT {pid}"
        steps.say(text)

    return say
