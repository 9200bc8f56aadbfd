"""The table of verbs: name, where its code is, what it may do to a cluster, and the line that help prints.

Nothing is imported until a verb is chosen, so that help and completion stay quick.
"""

from __future__ import annotations

import importlib
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.text import nearest
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    from kubectl_ctrl.cli.parsing.verb import Verb


class Effect(StrEnum):
    """What a verb can do to a cluster; write and destroy pass the guard."""

    NONE = "none"
    READ = "read"
    DRY_RUN = "dry-run"
    WRITE = "write"
    DESTROY = "destroy"


class Entry(Value):
    """One row of the table."""

    name: str
    code: str
    effect: Effect
    summary: str


VERBS = (
    Entry(
        "up", "kubectl_ctrl.cli.verbs.up:VERB", Effect.WRITE, "Make a cluster to play in, and run controllers on it."
    ),
    Entry(
        "down",
        "kubectl_ctrl.cli.verbs.down:VERB",
        Effect.DESTROY,
        "Take away a cluster that up made, and all that runs on it.",
    ),
    Entry("run", "kubectl_ctrl.cli.verbs.run:VERB", Effect.WRITE, "Run controllers here, against the current context."),
    Entry(
        "trace",
        "kubectl_ctrl.cli.verbs.trace:VERB",
        Effect.READ,
        "Show every reconcile of an object: why it ran, and what it did.",
    ),
    Entry(
        "plan",
        "kubectl_ctrl.cli.verbs.plan:VERB",
        Effect.DRY_RUN,
        "Print what a controller would do with an object, without doing it.",
    ),
    Entry(
        "list",
        "kubectl_ctrl.cli.verbs.list:VERB",
        Effect.READ,
        "List the bundled controllers, and where each is installed and run.",
    ),
    Entry(
        "install",
        "kubectl_ctrl.cli.verbs.install:VERB",
        Effect.WRITE,
        "Put what controllers need into the cluster: CRDs and rights.",
    ),
    Entry(
        "uninstall",
        "kubectl_ctrl.cli.verbs.uninstall:VERB",
        Effect.DESTROY,
        "Take out what install made: rights by default, CRDs when asked to.",
    ),
    Entry(
        "example",
        "kubectl_ctrl.cli.verbs.example:VERB",
        Effect.NONE,
        "Print a controller's example object as YAML.",
    ),
    Entry(
        "simulate",
        "kubectl_ctrl.cli.verbs.simulate:VERB",
        Effect.READ,
        "Print what the scaler will do with a workload, and when.",
    ),
    Entry(
        "explain",
        "kubectl_ctrl.cli.verbs.explain:VERB",
        Effect.READ,
        "Say why an object is in the state it is in, and what comes next.",
    ),
    Entry(
        "queue",
        "kubectl_ctrl.cli.verbs.queue:VERB",
        Effect.READ,
        "Show what waits, runs and backs off in controllers that run here.",
    ),
    Entry(
        "rbac",
        "kubectl_ctrl.cli.verbs.rbac:VERB",
        Effect.READ,
        "Print the rights that a controller has, used, lacked, never used.",
    ),
    Entry(
        "replay",
        "kubectl_ctrl.cli.verbs.replay:VERB",
        Effect.READ,
        "Execute a recorded reconcile again with today's code, and compare.",
    ),
    Entry(
        "record",
        "kubectl_ctrl.cli.verbs.record:VERB",
        Effect.READ,
        "List, export and prune what runs have recorded.",
    ),
    Entry(
        "cluster",
        "kubectl_ctrl.cli.verbs.cluster:VERB",
        Effect.DESTROY,
        "The pieces of up and down: make, list, use and take away clusters.",
    ),
    Entry(
        "logs",
        "kubectl_ctrl.cli.verbs.logs:VERB",
        Effect.NONE,
        "Print what controllers in the background say.",
    ),
    Entry(
        "stop",
        "kubectl_ctrl.cli.verbs.stop:VERB",
        Effect.NONE,  # ends processes of this machine; what is in a cluster stays as it is
        "End controllers that run here, also those of another terminal.",
    ),
    Entry(
        "status",
        "kubectl_ctrl.cli.verbs.status:VERB",
        Effect.READ,
        "List the controllers that run here, also in the background.",
    ),
    Entry(
        "completion",
        "kubectl_ctrl.cli.verbs.completion:VERB",
        Effect.NONE,
        "Have the shell complete verbs, flags, controllers and objects.",
    ),
    Entry(
        "new",
        "kubectl_ctrl.cli.verbs.new:VERB",
        Effect.NONE,
        "Write the folder of a new controller, small and working.",
    ),
    Entry(
        "doctor",
        "kubectl_ctrl.cli.verbs.doctor:VERB",
        Effect.READ,  # what --fix changes passes the guard in `mending`
        "Say what is there, missing or left behind, and mend it.",
    ),
    Entry("options", "kubectl_ctrl.cli.verbs.options:VERB", Effect.NONE, "List the flags that every verb takes."),
    Entry("version", "kubectl_ctrl.cli.verbs.version:VERB", Effect.NONE, "Print the version of this tool."),
)


def names() -> tuple[str, ...]:
    return tuple(entry.name for entry in VERBS)


def find(name: str) -> Entry:
    """The row of a verb."""
    for entry in VERBS:
        if entry.name == name:
            return entry
    hint = nearest(name, names()) or f"the verbs are: {', '.join(names())}"
    raise UsageError(f"Unknown verb: {name!r}.", next_step=hint)


def load(entry: Entry) -> Verb:
    """Import a verb's code."""
    verb: Verb = attribute(entry.code)
    return verb


def attribute(code: str) -> Any:
    """What stands at `module:attribute`."""
    module, _, name = code.partition(":")
    return getattr(importlib.import_module(module), name)
