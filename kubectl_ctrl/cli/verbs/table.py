"""The table of verbs: name, where its code is, what it may do to a cluster, and the line that help prints.

Nothing is imported until a verb is chosen, so that help and completion stay quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.target.effect import Effect
from kubectl_ctrl.text import nearest
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    from kubectl_ctrl.cli.parsing.verb import Verb


class Entry(Value):
    """One row of the table."""

    name: str
    code: str
    effect: Effect
    summary: str


VERBS = (
    Entry("up", "kubectl_ctrl.cli.verbs.up:VERB", Effect.WRITE, "Create a local cluster and run controllers on it."),
    Entry(
        "down",
        "kubectl_ctrl.cli.verbs.down:VERB",
        Effect.DESTROY,
        "Delete a cluster that up created, and everything that runs on it.",
    ),
    Entry(
        "run",
        "kubectl_ctrl.cli.verbs.run:VERB",
        Effect.WRITE,
        "Run controllers on this machine against the current context.",
    ),
    Entry(
        "trace",
        "kubectl_ctrl.cli.verbs.trace:VERB",
        Effect.READ,
        "Show every reconcile of an object: why it ran and what it did.",
    ),
    Entry(
        "plan",
        "kubectl_ctrl.cli.verbs.plan:VERB",
        Effect.DRY_RUN,
        "Show what a controller would change, without changing anything.",
    ),
    Entry(
        "list",
        "kubectl_ctrl.cli.verbs.list:VERB",
        Effect.READ,
        "List the bundled controllers and where they are installed and run.",
    ),
    Entry(
        "install",
        "kubectl_ctrl.cli.verbs.install:VERB",
        Effect.WRITE,
        "Install the CRDs and the RBAC of controllers into the cluster.",
    ),
    Entry(
        "uninstall",
        "kubectl_ctrl.cli.verbs.uninstall:VERB",
        Effect.DESTROY,
        "Remove the RBAC of controllers; with --crds=delete, also the CRDs.",
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
        "Show what the scaler will do with a workload, and when.",
    ),
    Entry(
        "explain",
        "kubectl_ctrl.cli.verbs.explain:VERB",
        Effect.READ,
        "Explain the state of an object and what happens next.",
    ),
    Entry(
        "queue",
        "kubectl_ctrl.cli.verbs.queue:VERB",
        Effect.READ,
        "Show the work queues of controllers that run on this machine.",
    ),
    Entry(
        "rbac",
        "kubectl_ctrl.cli.verbs.rbac:VERB",
        Effect.READ,
        "Print a controller's rights: granted, used, missing or unused.",
    ),
    Entry(
        "replay",
        "kubectl_ctrl.cli.verbs.replay:VERB",
        Effect.READ,
        "Run a recorded reconcile again with today's code, and compare.",
    ),
    Entry(
        "record",
        "kubectl_ctrl.cli.verbs.record:VERB",
        Effect.READ,
        "List, export and prune recorded runs.",
    ),
    Entry(
        "cluster",
        "kubectl_ctrl.cli.verbs.cluster:VERB",
        Effect.DESTROY,
        "Create, list, use and delete local clusters.",
    ),
    Entry(
        "logs",
        "kubectl_ctrl.cli.verbs.logs:VERB",
        Effect.NONE,
        "Print the logs of controllers in the background.",
    ),
    Entry(
        "stop",
        "kubectl_ctrl.cli.verbs.stop:VERB",
        Effect.NONE,  # ends processes of this machine; what is in a cluster stays as it is
        "Stop controllers that run on this machine, in any terminal.",
    ),
    Entry(
        "status",
        "kubectl_ctrl.cli.verbs.status:VERB",
        Effect.READ,
        "List the controllers that run on this machine.",
    ),
    Entry(
        "completion",
        "kubectl_ctrl.cli.verbs.completion:VERB",
        Effect.NONE,
        "Complete verbs, flags, controllers and objects in your shell.",
    ),
    Entry(
        "new",
        "kubectl_ctrl.cli.verbs.new:VERB",
        Effect.NONE,
        "Create the folder of a new controller, small and working.",
    ),
    Entry(
        "doctor",
        "kubectl_ctrl.cli.verbs.doctor:VERB",
        Effect.READ,  # what --fix changes passes the guard in doctor/fixes
        "Check this machine and the cluster for problems, and fix them.",
    ),
    Entry("options", "kubectl_ctrl.cli.verbs.options:VERB", Effect.NONE, "List the flags that all verbs take."),
    Entry("version", "kubectl_ctrl.cli.verbs.version:VERB", Effect.NONE, "Print the version of kubectl ctrl."),
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
