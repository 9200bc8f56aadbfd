"""The commands that the README tells a newcomer to type."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


class Readme:
    """Finds commands by their shape, so that a README without them fails instead of leaving them untried."""

    def __init__(self, file: Path) -> None:
        self._text = file.read_text()
        blocks = re.findall(r"^```sh\n(.*?)^```$", self._text, re.MULTILINE | re.DOTALL)
        self._blocks = [[line.split("  #")[0].strip() for line in block.splitlines()] for block in blocks]

    def first(self) -> list[str]:
        """The first block: what to type after `git clone`."""
        return self._found(self._blocks[:1], r".+")

    def installs(self) -> list[str]:
        """The ways to install the checkout, named in a sentence."""
        return self._found([re.findall(r"`([^`\n]+)`", self._text)], r"\S.* install \.")

    def new(self) -> str:
        """The command that writes a controller, without kubectl, which needs none for a plugin."""
        return self._found(self._blocks, r"kubectl ctrl new \w+")[0].replace("kubectl ctrl", "kubectl-ctrl", 1)

    def _found(self, blocks: Iterable[Iterable[str]], shape: str) -> list[str]:
        found = [line for block in blocks for line in block if re.fullmatch(shape, line)]
        if not found:
            raise LookupError(f"README.md has no command like {shape!r} where one is expected.")
        return list(dict.fromkeys(found))
