"""Commands that are suggested, made to mean the cluster that was meant.

Whoever copies `next: kubectl ctrl install foo` means the cluster that the error was about, and the current context may
be another: the flags that led there have to be in the line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.value import Value

_POINTERS = ("--context", "--kubeconfig", "--cluster", "--server", "--user")
_OURS = "doctor(?! --fix k)|explain|install|list|plan|queue|rbac|replay|run|simulate|trace|uninstall"
_THEIRS = "annotate|apply|cluster-info|create|delete|describe|edit|get|label|patch|scale"
_COMMAND = re.compile(rf"\bkubectl (?:ctrl (?P<verb>{_OURS})\b|(?=(?:{_THEIRS})\b))")


class Pin(Value):
    """The flags that mean the cluster, for our verbs and for kubectl, which knows no cluster of ours by name."""

    ours: str = ""
    theirs: str = ""

    def __bool__(self) -> bool:
        return bool(self.ours)

    def into(self, text: str) -> str:
        """The text with every command in it pinned, unless it says already what it means."""
        if not self or any(flag in text for flag in _POINTERS[:2]):
            return text
        return _COMMAND.sub(lambda found: self._said(found["verb"]), text)

    def _said(self, verb: str | None) -> str:
        return f"kubectl ctrl {verb} {self.ours}" if verb else f"kubectl {self.theirs} "


def as_typed(typed: Sequence[str]) -> Pin:
    """What the command line itself said of the cluster."""
    return joined([flag for flag in typed if flag.partition("=")[0] in _POINTERS])


def joined(flags: Sequence[str]) -> Pin:
    """Flags that mean the same to our verbs and to kubectl."""
    said = str(command(*flags))
    return Pin(said, said)


def by_file(kubeconfig: Path, context: str, *, known: bool = False) -> Pin:
    """A cluster of ours; by its context alone where our verbs know it by that.

    With its context also where there is a file: others may have written another current-context into it.
    """
    both = str(command(f"--kubeconfig={kubeconfig}", f"--context={context}"))
    return Pin(str(command(f"--context={context}")) if known else both, both)
