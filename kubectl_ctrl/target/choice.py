"""Where kubectl's own flags and the kubeconfig point, before anyone is asked."""

from __future__ import annotations

import os
from pathlib import Path

from kubectl_ctrl.clusters.registry import Entry, Phase, Registry
from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.kubeconfig import files as kubefiles
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, Resolved, load
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.target.pin import Pin, by_file
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value

# Of these each alone says which cluster is meant.
_POINTERS = ("context", "cluster", "server", "user")


class Target(Value):
    """A cluster, and the flags with which a suggested command addresses it; no flags where those of this call do."""

    resolved: Resolved
    pin: Pin = Pin()


def pointed(user: User, flags: ConfigFlags) -> Target:
    """The server, its namespace and how to get in; ConfigError where they say nothing that can be used.

    After the user's files, which win, --context also finds clusters of ours; and where there is no current-context at
    all, the only cluster of ours is meant. Not so where a shell still means one that is gone: no other stands for it.
    """
    gone = gone_cluster(user, flags)
    try:
        resolved = load(
            flags, user.environ, user.home, managed=lambda: {} if gone else contexts_of_ours(Registry.of(user))
        )
    except ConfigError as error:
        if not gone:
            raise
        raise ConfigError(
            f"Cluster {gone!r} no longer exists, and the kubeconfig that is asked for was its own.",
            tried=error.message,
            next_step=f"{ctrl('up', '--name', gone)} makes a new one; unset KUBECONFIG goes back to your own contexts",
        ) from error
    return Target(resolved, pin_apart(flags, resolved))


def pin_apart(flags: ConfigFlags, resolved: Resolved) -> Pin:
    """What means a cluster that stands apart from the user's files; empty where they have it."""
    file = resolved.origin.flags.kubeconfig
    return by_file(Path(file), resolved.context or "", known=True) if file != flags.kubeconfig else Pin()


def kubectl_at(resolved: Resolved) -> tuple[str, ...]:
    """`kubectl`, with the flags by which it gets there: it knows no cluster of ours by its context alone."""
    file = ("--kubeconfig", resolved.origin.flags.kubeconfig) if resolved.origin.flags.kubeconfig else ()
    context = ("--context", resolved.context) if resolved.context else ()
    return ("kubectl", *file, *context)


def pointed_at(user: User, entry: Entry) -> Target:
    """A cluster of ours through its own kubeconfig: nothing that the user's files or current-context say matters."""
    if not entry.kubeconfig.exists():
        raise ConfigError(
            f"Cluster {entry.name!r} has no kubeconfig yet: its making did not end.",
            tried=str(entry.kubeconfig),
            next_step=f"{ctrl('up', '--name', entry.name)} makes it anew, {ctrl('down', entry.name)} removes it",
        )
    flags = ConfigFlags(kubeconfig=str(entry.kubeconfig), context=entry.context)
    pin = Pin() if entry.kubeconfig in _named(user) else by_file(entry.kubeconfig, entry.context)
    return Target(load(flags, user.environ, user.home), pin)


def _named(user: User) -> list[Path]:
    return [Path(name).absolute() for name in user.environ.get("KUBECONFIG", "").split(os.pathsep) if name]


def contexts_of_ours(registry: Registry) -> dict[str, Path]:
    """The contexts of clusters that we made and that are there, each with its kubeconfig."""
    return {entry.context: entry.kubeconfig for entry in registry.entries() if entry.phase is Phase.READY}


def gone_cluster(user: User, flags: ConfigFlags) -> str:
    """The cluster of ours that was taken away while this shell still points to it; "" where it points elsewhere.

    `cluster env` made KUBECONFIG name a file that went with its cluster.
    """
    if flags.context or flags.server:
        return ""
    folder = Registry.of(user).folder.absolute()
    files = [Path(flags.kubeconfig).absolute()] if flags.kubeconfig else _named(user)
    return next((file.parent.name for file in files if file.parent.parent == folder and not file.exists()), "")


def means_nothing(user: User, flags: ConfigFlags) -> bool:
    """Whether neither flags nor files name a cluster at all, rather than a wrong one, or one that is gone."""
    if any(getattr(flags, name) for name in _POINTERS) or gone_cluster(user, flags):
        return False
    try:
        merged = kubefiles.read(flags.kubeconfig, user.environ, user.home)
    except ConfigError:
        return False
    return not merged.current_context
