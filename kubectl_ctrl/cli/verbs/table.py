"""The table of verbs: name, effect on a cluster, and summary. The code of a verb is the module of the same name.

A verb is imported only when it is called, so that help and completion are fast.
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
    name: str
    effect: Effect  # without flags; doctor --fix calls the guard itself
    summary: str


VERBS = (
    Entry("up", Effect.WRITE, "Create a local cluster and run controllers on it."),
    Entry("down", Effect.DESTROY, "Delete a cluster that up created, and everything that runs on it."),
    Entry("run", Effect.WRITE, "Run controllers on this machine against the current context."),
    Entry("trace", Effect.READ, "Show every reconcile of an object: why it ran and what it did."),
    Entry("plan", Effect.DRY_RUN, "Show what a controller would change, without changing anything."),
    Entry("list", Effect.READ, "List the bundled controllers and where they are installed and run."),
    Entry("install", Effect.WRITE, "Install the CRDs and the RBAC of controllers into the cluster."),
    Entry("uninstall", Effect.DESTROY, "Remove the RBAC of controllers; with --crds=delete, also the CRDs."),
    Entry("example", Effect.NONE, "Print a controller's example object as YAML."),
    Entry("simulate", Effect.READ, "Show what the scaler will do with a workload, and when."),
    Entry("explain", Effect.READ, "Explain the state of an object and what happens next."),
    Entry("queue", Effect.READ, "Show the work queues of controllers that run on this machine."),
    Entry("rbac", Effect.READ, "Print a controller's rights: granted, used, missing or unused."),
    Entry("replay", Effect.READ, "Run a recorded reconcile again with today's code, and compare."),
    Entry("record", Effect.READ, "List, export and prune recorded runs."),
    Entry("cluster", Effect.DESTROY, "Create, list, use and delete local clusters."),
    Entry("logs", Effect.NONE, "Print the logs of controllers in the background."),
    Entry("stop", Effect.NONE, "Stop controllers that run on this machine, in any terminal."),
    Entry("status", Effect.READ, "List the controllers that run on this machine."),
    Entry("completion", Effect.NONE, "Complete verbs, flags, controllers and objects in your shell."),
    Entry("new", Effect.NONE, "Create the folder of a new controller, small and working."),
    Entry(
        "doctor", Effect.READ, "Check this machine and the cluster for problems, and fix them."
    ),  # doctor/fixes calls the guard for --fix
    Entry("options", Effect.NONE, "List the flags that all verbs take."),
    Entry("version", Effect.NONE, "Print the version of kubectl ctrl."),
)


def names() -> tuple[str, ...]:
    return tuple(entry.name for entry in VERBS)


def find(name: str) -> Entry:
    for entry in VERBS:
        if entry.name == name:
            return entry
    hint = nearest(name, names()) or f"the verbs are: {', '.join(names())}"
    raise UsageError(f"Unknown verb: {name!r}.", next_step=hint)


def load(entry: Entry) -> Verb:
    verb: Verb = importlib.import_module(f"kubectl_ctrl.cli.verbs.{entry.name}").VERB
    return verb


def attribute(code: str) -> Any:
    """The object at `module:attribute`."""
    module, _, name = code.partition(":")
    return getattr(importlib.import_module(module), name)
