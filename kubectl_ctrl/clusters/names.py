"""Clusters of ours as verbs find them: by name, or the one that can only be meant; and what making one takes."""

from __future__ import annotations

import os

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.provider import Machine
from kubectl_ctrl.clusters.registry import Book, Entry, Phase, is_name
from kubectl_ctrl.errors import ClusterError, ConfigError, NoCluster, Refused, UsageError
from kubectl_ctrl.model.suggestions import Command, command, ctrl
from kubectl_ctrl.text import nearest
from kubectl_ctrl.user import User

DEFAULT = "ctrl"


def machine(user: User, clock: Clock) -> Machine:
    """What providers may use."""
    from random import SystemRandom

    return Machine(clock=clock, rng=SystemRandom(), environ=user.environ, cache=user.cache)


def entry_of(book: Book, name: str) -> Entry:
    """The cluster of that name; NoCluster where it is none of ours."""
    book.check(name)
    entry = book.find(name)
    if entry is None:
        raise _none(book, f"There is no managed cluster {name!r}.", name)
    return entry


def ready(book: Book, name: str) -> Entry:
    """One that was made to its end."""
    entry = entry_of(book, name)
    if entry.phase is not Phase.READY:
        state = "made" if entry.phase is Phase.CREATING else "taken away"
        if other := _changing(book, name):
            raise ClusterError(
                f"Cluster {name!r} is not completely {state} yet: process {other} is changing it.",
                next_step="wait for that process, and repeat the command",
            )
        raise ClusterError(
            f"Cluster {name!r} was not completely {state}.",
            next_step=f"{down(name)} deletes the rest of it, {up(name)} recreates it",
        )
    return entry


def only(book: Book) -> str:
    """The one that is meant without a name: `ctrl`, or the only one; "" where there is none at all."""
    found = names(book) or locks(book)
    if DEFAULT in found:
        return DEFAULT
    if len(found) > 1:
        raise UsageError("There are several managed clusters.", next_step=f"choose one of: {', '.join(found)}")
    return found[0] if found else ""


def names(book: Book) -> list[str]:
    """Of all of them, also of those whose page cannot be read."""
    unread = {path.name for path in book.damaged() if is_name(path.name)}
    return sorted({*unread, *(entry.name for entry in book.entries())})


def is_there(book: Book, name: str) -> bool:
    """Whether there is anything of it: a lock may be left that somebody held who was killed."""
    return book.place(name).is_dir() or name in locks(book)


def locks(book: Book) -> list[str]:
    """The names whose clusters are being changed, or whose changing was cut off."""
    return sorted(path.stem for path in book.folder.glob("[!.]*.lock"))


def left(book: Book, name: str) -> str:
    """What there is of it now, and the command that takes it away."""
    if other := _changing(book, name):
        return f"process {other} is changing cluster {name} right now"
    entry = book.find(name)
    if not book.place(name).is_dir():
        return f"nothing is left of cluster {name}"
    if entry is not None and entry.phase is Phase.READY:
        return f"cluster {name} is kept; to delete it: {down(name)}"
    return f"cluster {name} is incomplete; to delete the rest: {down(name)}"


def _changing(book: Book, name: str) -> int | None:
    """The other process that holds the cluster."""
    holder = book.holder(name)
    if holder is None or holder == os.getpid():
        return None
    with book.locked(name) as free:
        return None if free else holder


def up(name: str) -> Command:
    """The command that makes it."""
    return ctrl("up") if name == DEFAULT else ctrl("up", "--name", name)


def down(name: str) -> Command:
    """The command that takes it away."""
    return ctrl("down") if name == DEFAULT else ctrl("down", name)


def _none(book: Book, message: str, name: str) -> NoCluster:
    found = names(book)
    others = f"available: {', '.join(found)}" if found else f"{up(name)} makes it"
    return NoCluster(message, next_step=nearest(name, found) or others)


def check_kubeconfig(user: User, entry: Entry | None) -> None:
    """Raise where contexts of others would go with the cluster's own kubeconfig.

    A shell of `cluster env` has it for KUBECONFIG, and whoever logs in to another cluster there has it written to.
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


def contexts_of(user: User, entry: Entry) -> tuple[list[str], list[str]]:
    """The contexts in the cluster's own kubeconfig that mean it, and those that mean others."""
    from kubectl_ctrl.kubeconfig import files

    try:
        own = files.read(str(entry.kubeconfig), user.environ, user.home)
        at = {name: own.clusters.get(one.text("cluster")) for name, one in own.contexts.items()}
        servers = {name: cluster.text("server") for name, cluster in at.items() if cluster}
    except ConfigError:  # one that is of no use to anybody, or not there yet
        return [], []
    its_own = {entry.server, servers.get(entry.context)}
    here = [name for name, server in servers.items() if server in its_own]
    return here, [name for name in servers if name not in here]
