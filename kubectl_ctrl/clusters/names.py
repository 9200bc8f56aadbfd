"""Managed clusters as verbs find them: by name, or without a name the default or only one."""

from __future__ import annotations

import os

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.provider import Machine
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry, is_name
from kubectl_ctrl.errors import ClusterError, ConfigError, NoCluster, Refused, UsageError
from kubectl_ctrl.model.suggestions import Command, command, ctrl
from kubectl_ctrl.text import nearest
from kubectl_ctrl.user import User

DEFAULT = "ctrl"


def machine(user: User, clock: Clock) -> Machine:
    from random import SystemRandom

    return Machine(clock=clock, rng=SystemRandom(), environ=user.environ, cache=user.cache)


def entry_of(registry: Registry, name: str) -> ClusterEntry:
    """The cluster of that name; NoCluster if it is not a managed one."""
    registry.check(name)
    entry = registry.find(name)
    if entry is None:
        found = names(registry)
        others = f"available: {', '.join(found)}" if found else f"{up(name)} creates it"
        raise NoCluster(f"There is no managed cluster {name!r}.", next_step=nearest(name, found) or others)
    return entry


def ready(registry: Registry, name: str) -> ClusterEntry:
    """The same, if it was completely created."""
    entry = entry_of(registry, name)
    if entry.phase is not Phase.READY:
        if other := _changing(registry, name):
            raise ClusterError(
                f"Cluster {name!r} is not completely {entry.phase.done} yet: process {other} is changing it.",
                next_step="wait for that process, and repeat the command",
            )
        raise ClusterError(
            f"Cluster {name!r} was not completely {entry.phase.done}.",
            next_step=f"{down(name)} deletes the rest of it, {up(name)} recreates it",
        )
    return entry


def only(registry: Registry) -> str:
    """The cluster of commands without a name: `ctrl`, or the only one; "" if there is none."""
    found = names(registry) or locks(registry)
    if DEFAULT in found:
        return DEFAULT
    if len(found) > 1:
        raise UsageError("There are several managed clusters.", next_step=f"choose one of: {', '.join(found)}")
    return found[0] if found else ""


def names(registry: Registry) -> list[str]:
    """The names of all clusters, also of those whose entry cannot be read."""
    unread = {path.name for path in registry.damaged() if is_name(path.name)}
    return sorted({*unread, *(entry.name for entry in registry.entries())})


def is_there(registry: Registry, name: str) -> bool:
    """Whether anything of it exists, if only the lock file of a process that was killed."""
    return registry.place(name).is_dir() or name in locks(registry)


def locks(registry: Registry) -> list[str]:
    """The names of clusters with a lock file: they are being changed, or a kill ended that."""
    return sorted(path.stem for path in registry.folder.glob("[!.]*.lock"))


def left(registry: Registry, name: str) -> str:
    """The state of a cluster as a sentence, with the command that deletes it."""
    if other := _changing(registry, name):
        return f"process {other} is changing cluster {name} right now"
    entry = registry.find(name)
    if not registry.place(name).is_dir():
        return f"nothing is left of cluster {name}"
    if entry is not None and entry.phase is Phase.READY:
        return f"cluster {name} is kept; to delete it: {down(name)}"
    return f"cluster {name} is incomplete; to delete the rest: {down(name)}"


def _changing(registry: Registry, name: str) -> int | None:
    """The other process that holds the cluster's lock."""
    holder = registry.holder(name)
    if holder is None or holder == os.getpid():
        return None
    with registry.locked(name) as free:
        return None if free else holder


def up(name: str) -> Command:
    return ctrl("up") if name == DEFAULT else ctrl("up", "--name", name)


def down(name: str) -> Command:
    return ctrl("down") if name == DEFAULT else ctrl("down", name)


def check_kubeconfig(user: User, entry: ClusterEntry | None) -> None:
    """Raise if the deletion of the cluster's own kubeconfig would delete contexts of other clusters.

    In a shell of `cluster env` this file is KUBECONFIG, so a login to another cluster writes to it.
    """
    if entry is None or not entry.server:
        return
    _, theirs = contexts_of(user, entry)
    if theirs:
        removal = command("kubectl", "--kubeconfig", entry.kubeconfig, "config", "delete-context", theirs[0])
        raise Refused(
            f"The kubeconfig of cluster {entry.name!r} also contains other contexts, which would be deleted with it: "
            f"{', '.join(map(repr, theirs))}.",
            tried=str(entry.kubeconfig),
            next_step=f"copy the file if you need them; then, for each: {removal}",
        )


def contexts_of(user: User, entry: ClusterEntry) -> tuple[list[str], list[str]]:
    """The contexts in the cluster's own kubeconfig that address it, and those that address others."""
    from kubectl_ctrl.kubeconfig import files

    try:
        own = files.read(str(entry.kubeconfig), user.environ, user.home)
        at = {name: own.clusters.get(one.text("cluster")) for name, one in own.contexts.items()}
        servers = {name: cluster.text("server") for name, cluster in at.items() if cluster}
    except ConfigError:  # it is corrupt, or does not exist yet
        return [], []
    its_own = {entry.server, servers.get(entry.context)}
    here = [name for name, server in servers.items() if server in its_own]
    return here, [name for name in servers if name not in here]
