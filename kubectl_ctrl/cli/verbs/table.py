"""The table of verbs: name, effect on a cluster, and summary. The code of a verb is the module of the same name.

A verb is imported only when it is called, so that help and completion are fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.text import nearest
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    from kubectl_ctrl.cli.parsing.verb import Verb


class VerbEntry(Value):
    name: str
    effect: CommandEffect  # without flags; doctor --fix calls the guard itself
    summary: str


VERBS = (
    VerbEntry("up", CommandEffect.WRITE, "Create a local cluster and run controllers on it."),
    VerbEntry("down", CommandEffect.DESTROY, "Delete a cluster that up created, and everything that runs on it."),
    VerbEntry("run", CommandEffect.WRITE, "Run controllers on this machine against the current context."),
    VerbEntry("trace", CommandEffect.READ, "Show every reconcile of an object: why it ran and what it did."),
    VerbEntry("plan", CommandEffect.DRY_RUN, "Show what a controller would change, without changing anything."),
    VerbEntry("list", CommandEffect.READ, "List the bundled controllers and where they are installed and run."),
    VerbEntry("install", CommandEffect.WRITE, "Install the CRDs and the RBAC of controllers into the cluster."),
    VerbEntry("uninstall", CommandEffect.DESTROY, "Remove the RBAC of controllers; with --crds=delete, also the CRDs."),
    VerbEntry("example", CommandEffect.NONE, "Print a controller's example object as YAML."),
    VerbEntry("simulate", CommandEffect.READ, "Show what the scaler will do with a workload, and when."),
    VerbEntry("explain", CommandEffect.READ, "Explain the state of an object and what happens next."),
    VerbEntry("queue", CommandEffect.READ, "Show the work queues of controllers that run on this machine."),
    VerbEntry("rbac", CommandEffect.READ, "Print a controller's rights: granted, used, missing or unused."),
    VerbEntry("replay", CommandEffect.READ, "Run a recorded reconcile again with today's code, and compare."),
    VerbEntry("record", CommandEffect.READ, "List, export and prune recorded runs."),
    VerbEntry("cluster", CommandEffect.DESTROY, "Create, list, use and delete local clusters."),
    VerbEntry("sandbox", CommandEffect.NONE, "Run a command, such as a test suite, on a new temporary cluster."),
    VerbEntry("logs", CommandEffect.NONE, "Print the logs of controllers in the background."),
    VerbEntry("stop", CommandEffect.NONE, "Stop controllers that run on this machine, in any terminal."),
    VerbEntry("status", CommandEffect.READ, "List the controllers that run on this machine."),
    VerbEntry("completion", CommandEffect.NONE, "Complete verbs, flags, controllers and objects in your shell."),
    VerbEntry("new", CommandEffect.NONE, "Create the folder of a new controller, small and working."),
    VerbEntry(
        "doctor", CommandEffect.READ, "Check this machine and the cluster for problems, and fix them."
    ),  # doctor/fixes calls the guard for --fix
    VerbEntry("options", CommandEffect.NONE, "List the flags that all verbs take."),
    VerbEntry("version", CommandEffect.NONE, "Print the version of kubectl ctrl."),
)


def names() -> tuple[str, ...]:
    return tuple(entry.name for entry in VERBS)


def find(name: str) -> VerbEntry:
    for entry in VERBS:
        if entry.name == name:
            return entry
    hint = nearest(name, names()) or f"the verbs are: {', '.join(names())}"
    raise UsageError(f"Unknown verb: {name!r}.", next_step=hint)


def load(entry: VerbEntry) -> Verb:
    verb: Verb = importlib.import_module(f"kubectl_ctrl.cli.verbs.{entry.name}").VERB
    return verb


def attribute(code: str) -> Any:
    """The object at `module:attribute`."""
    module, _, name = code.partition(":")
    return getattr(importlib.import_module(module), name)
