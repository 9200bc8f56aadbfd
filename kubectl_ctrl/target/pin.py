"""Adds the flags of the selected cluster to suggested commands.

A user who copies `next: kubectl ctrl install foo` wants the cluster of the error, and the current context may be
another. So the command must contain the flags that selected the cluster.
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
    """The flags that select the cluster: for kubectl ctrl, and for kubectl, which does not know managed clusters."""

    ours: str = ""
    theirs: str = ""

    def __bool__(self) -> bool:
        return bool(self.ours)

    def into(self, text: str) -> str:
        """The text with the flags in each command, unless it already selects a cluster."""
        if not self or any(flag in text for flag in _POINTERS[:2]):
            return text
        return _COMMAND.sub(
            lambda found: f"kubectl ctrl {verb} {self.ours}" if (verb := found["verb"]) else f"kubectl {self.theirs} ",
            text,
        )


def as_typed(typed: Sequence[str]) -> Pin:
    """The flags of the command line that select a cluster."""
    return joined([flag for flag in typed if flag.partition("=")[0] in _POINTERS])


def joined(flags: Sequence[str]) -> Pin:
    """Flags that both kubectl ctrl and kubectl understand."""
    text = str(command(*flags))
    return Pin(text, text)


def by_file(kubeconfig: Path, context: str, *, known: bool = False) -> Pin:
    """A managed cluster; if `known`, kubectl ctrl finds it by its context alone.

    The context is given beside the file because others may change the current-context in it.
    """
    both = str(command(f"--kubeconfig={kubeconfig}", f"--context={context}"))
    return Pin(str(command(f"--context={context}")) if known else both, both)
