"""How to reach a cluster that was brought up: its context in the user's kubeconfig, or the line that selects it."""

from __future__ import annotations

from kubectl_ctrl.clusters import names
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.devcluster.up import UpOptions
from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.kubeconfig import files
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.runs import background_notes
from kubectl_ctrl.runs.runners import runners
from kubectl_ctrl.user import User

_SIMULATED = "its pods are simulated: they become ready, and nothing runs in them"
_SANDBOX = "its API server is an imitation (docs/sandbox.md), without webhooks and CEL rules"


def pointers(user: User, options: UpOptions, entry: ClusterEntry) -> list[str]:
    """How to reach the cluster and what runs on it, and whether the user's current context is another one."""
    lines = [_SIMULATED] if entry.provider in ("kwok", "sandbox") and options.spec.nodes != 0 else []
    lines += [_SANDBOX] if entry.provider == "sandbox" else []
    lines += ["it has no nodes, so pods stay pending"] if options.spec.nodes == 0 else []
    if options.detach and (behind := _in_the_background(user, options, entry)):
        where = () if _is_current(user, entry) else ("--name", entry.name)
        lines.append(f"in the background: {ctrl('logs', behind[0], '-f', *where)}; {ctrl('stop', *behind, *where)}")
    name = () if entry.name == names.DEFAULT else (entry.name,)
    return [*lines, *_context(user, entry, f'for this shell: eval "$({ctrl("cluster", "env", *name)})"')]


def _in_the_background(user: User, options: UpOptions, entry: ClusterEntry) -> list[str]:
    """Without controllers that were found running in a terminal, which have no log."""
    found = runners(user.state, cluster=entry.uid)
    controllers = []
    for name in options.controllers:
        notes = background_notes.read(background_notes.log_of(entry, name))
        pids = {runner.pid for runner in found if runner.controller == name}
        if not pids or (notes is not None and notes.pid in pids):
            controllers.append(name)
    return controllers


def _is_current(user: User, entry: ClusterEntry) -> bool:
    """Whether every verb addresses it without a flag."""
    try:
        own = files.read("", user.environ, user.home)
    except ConfigError:
        return False
    there = own.contexts.get(own.current_context)
    return (
        own.current_context == entry.context
        and there is not None
        and bool(entry.used or there.file == entry.kubeconfig)
    )


def _context(user: User, entry: ClusterEntry, line: str) -> list[str]:
    """The cluster's context beside the user's own, and the line that selects it where it is not the current one."""
    try:
        own = files.read("", user.environ, user.home)
    except ConfigError as error:
        return [f"context {entry.context}; your kubeconfig is unchanged, and cannot be read: {error.message}", line]
    theirs = own.contexts.get(entry.context)
    if theirs is not None and theirs.file != entry.kubeconfig and not entry.used:
        return [
            f"your kubeconfig has another context {entry.context}, which --context selects; to use this cluster:",
            line,
        ]
    if _is_current(user, entry):
        return [f"context {entry.context} is your current one"]
    whose = f"your context {own.current_context} is unchanged" if own.current_context else "you have no current context"
    return [f"context {entry.context}; {whose}", line]
