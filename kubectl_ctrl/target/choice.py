"""The cluster of kubectl's flags and the kubeconfig, before any request."""

from __future__ import annotations

import os
from pathlib import Path

from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.kubeconfig import files as kubefiles
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, Resolved, load
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.target.pin import Pin, by_file
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value

# Each of these flags selects a cluster on its own.
_POINTERS = ("context", "cluster", "server", "user")


class Target(Value):
    """A cluster, and the flags with which a suggested command addresses it; none if those of this call do."""

    resolved: Resolved
    pin: Pin = Pin()


def pointed(user: User, flags: ConfigFlags) -> Target:
    """The selected cluster; ConfigError if the kubeconfig has none.

    --context also finds managed clusters; the user's files take precedence. Without any current-context, the only
    managed cluster is selected. A shell whose KUBECONFIG names a deleted managed cluster gets an error instead: its
    commands must not reach another cluster.
    """
    deleted = deleted_cluster(user, flags)
    try:
        resolved = load(
            flags, user.environ, user.home, managed=lambda: {} if deleted else managed_contexts(Registry.of(user))
        )
    except ConfigError as error:
        if not deleted:
            raise
        raise ConfigError(
            f"Cluster {deleted!r} no longer exists, and the selected kubeconfig was its own.",
            tried=error.message,
            next_step=f"{ctrl('up', '--name', deleted)} creates it again; unset KUBECONFIG selects your own contexts",
        ) from error
    return Target(resolved, pin_apart(flags, resolved))


def pin_apart(flags: ConfigFlags, resolved: Resolved) -> Pin:
    """The flags for a managed cluster that is not in the user's files; empty for a cluster in them."""
    file = resolved.origin.flags.kubeconfig
    return by_file(Path(file), resolved.context or "", known=True) if file != flags.kubeconfig else Pin()


def kubectl_at(resolved: Resolved) -> tuple[str, ...]:
    """`kubectl` with the flags of the cluster: kubectl does not find a managed cluster by its context alone."""
    file = ("--kubeconfig", resolved.origin.flags.kubeconfig) if resolved.origin.flags.kubeconfig else ()
    context = ("--context", resolved.context) if resolved.context else ()
    return ("kubectl", *file, *context)


def pointed_at(user: User, entry: ClusterEntry) -> Target:
    """A managed cluster through its own kubeconfig, independent of the user's files."""
    if not entry.kubeconfig.exists():
        raise ConfigError(
            f"Cluster {entry.name!r} has no kubeconfig: its creation did not finish.",
            tried=str(entry.kubeconfig),
            next_step=f"{ctrl('up', '--name', entry.name)} recreates it, {ctrl('down', entry.name)} deletes it",
        )
    flags = ConfigFlags(kubeconfig=str(entry.kubeconfig), context=entry.context)
    pin = Pin() if entry.kubeconfig in _named(user) else by_file(entry.kubeconfig, entry.context)
    return Target(load(flags, user.environ, user.home), pin)


def _named(user: User) -> list[Path]:
    return [Path(name).absolute() for name in user.environ.get("KUBECONFIG", "").split(os.pathsep) if name]


def managed_contexts(registry: Registry) -> dict[str, Path]:
    """The contexts of existing managed clusters, each with its kubeconfig."""
    return {entry.context: entry.kubeconfig for entry in registry.entries() if entry.phase is Phase.READY}


def deleted_cluster(user: User, flags: ConfigFlags) -> str:
    """The managed cluster whose kubeconfig this shell selects and that was deleted; "" for none.

    `cluster env` sets KUBECONFIG to a file in the folder of the cluster, which is deleted with it.
    """
    if flags.context or flags.server:
        return ""
    folder = Registry.of(user).folder.absolute()
    files = [Path(flags.kubeconfig).absolute()] if flags.kubeconfig else _named(user)
    return next((file.parent.name for file in files if file.parent.parent == folder and not file.exists()), "")


def selects_nothing(user: User, flags: ConfigFlags) -> bool:
    """Whether neither the flags nor the files select a cluster; False for a wrong or deleted one."""
    if any(getattr(flags, name) for name in _POINTERS) or deleted_cluster(user, flags):
        return False
    try:
        merged = kubefiles.read(flags.kubeconfig, user.environ, user.home)
    except ConfigError:
        return False
    return not merged.current_context
