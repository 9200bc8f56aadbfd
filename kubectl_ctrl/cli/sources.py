"""Controllers as a user names them on a command line: from the word to the declaration and its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kubectl_ctrl.cli import bundled

if TYPE_CHECKING:
    from kubectl_ctrl.install.parts import Parts
    from kubectl_ctrl.runtime.builder import ControllerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """A controller that a word meant."""

    word: str  # as it was given, to be repeated in commands that are suggested
    spec: ControllerSpec
    folder: Path  # where its manifests lie, if it has any

    def parts(self) -> Parts:
        from kubectl_ctrl.install.parts import read_parts

        return read_parts(self.folder, self.spec.name)


def resolve(words: Sequence[str], settings: Mapping[str, str] | None = None) -> tuple[Sourced, ...]:
    """The controllers that these words mean, none twice; an error names the word and what is wrong with it.

    `settings` are given to those that take them, by the names of their parameters; one that none takes is an error.
    """
    _ = settings
    names = bundled.check(words)
    return tuple(Sourced(word=name, spec=bundled.load(name), folder=bundled.folder(name)) for name in names)
