"""The README's commands for a new user."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


class Readme:
    """Finds commands by a pattern; a README without one of them is an error, so no command stays untested."""

    def __init__(self, file: Path) -> None:
        self._text = file.read_text()
        blocks = re.findall(r"^```sh\n(.*?)^```$", self._text, re.MULTILINE | re.DOTALL)
        self._blocks = [[line.split("  #")[0].strip() for line in block.splitlines()] for block in blocks]

    def first(self) -> list[str]:
        """The first block: the commands after `git clone`."""
        return self._found(self._blocks[:1], r".+")

    def installs(self) -> list[str]:
        """The commands that install the checkout, which are part of a sentence."""
        return self._found([re.findall(r"`([^`\n]+)`", self._text)], r"\S.* install \.")

    def new(self) -> str:
        """The command that creates a controller, without kubectl, which is not on that machine."""
        return self._found(self._blocks, r"kubectl ctrl new \w+")[0].replace("kubectl ctrl", "kubectl-ctrl", 1)

    def _found(self, blocks: Iterable[Iterable[str]], shape: str) -> list[str]:
        found = [line for block in blocks for line in block if re.fullmatch(shape, line)]
        if not found:
            raise LookupError(f"README.md has no command that matches {shape!r} in the expected place.")
        return list(dict.fromkeys(found))
