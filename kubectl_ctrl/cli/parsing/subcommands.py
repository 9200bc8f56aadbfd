"""Verbs whose first argument is an action, such as `record list`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.text import nearest


def chosen(
    given: ParsedCommandLine, verb: str, actions: Sequence[tuple[str, str]], own: Mapping[str, Sequence[str]]
) -> tuple[str, tuple[str, ...]]:
    """The action and the words after it; `own` names the flags that only some actions take, by their long names."""
    names = [name for name, _ in actions]
    if not given.arguments:
        raise UsageError(f"{verb} needs an action.", next_step=f"one of: {', '.join(names)}")
    action, *words = given.arguments
    if action not in names:
        hint = nearest(action, names) or f"one of: {', '.join(names)}"
        raise UsageError(f"{verb} has no action {action!r}.", next_step=hint)
    for flag in given.typed:
        name = flag.partition("=")[0].removeprefix("--")
        if action not in own.get(name, names):
            raise UsageError(f"--{name} is for {verb} {' and '.join(own[name])}.", next_step=str(ctrl(verb, "--help")))
    return action, tuple(words)
