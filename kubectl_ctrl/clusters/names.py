"""Clusters of ours as verbs find them: by name, or the one that can only be meant; and what making one takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.progress import FORMS, Progress
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.clusters.provider import Machine, Note, Wish
from kubectl_ctrl.clusters.registry import Book, Entry, Phase, is_name
from kubectl_ctrl.errors import ClusterError, ConfigError, NoCluster, Refused, UsageError
from kubectl_ctrl.model.suggestions import Command, command, ctrl
from kubectl_ctrl.runs.holder import is_stopped
from kubectl_ctrl.text import nearest

DEFAULT = "ctrl"
_MOST_NODES = 1000


def machine(app: App, clock: Clock) -> Machine:
    """What providers may use."""
    from random import SystemRandom

    return Machine(clock=clock, rng=SystemRandom(), environ=app.user.environ, cache=app.user.cache)


def wish(given: Given) -> Wish:
    """What the flags say of a cluster to be made; what cannot be meant is said before anything is touched."""
    from kubectl_ctrl.clusters.providers import AUTO, PROVIDERS  # who only asks for a path shall not wait for it

    nodes, wait = given["nodes"], given["wait"]
    if nodes is not None and not 0 <= nodes <= _MOST_NODES:
        raise UsageError(
            f"Invalid value for --nodes: it must be a whole number from 0 to {_MOST_NODES}.",
            next_step="for instance: --nodes 3",
        )
    if not 0 < wait <= 1e9:
        raise UsageError("Invalid value for --wait: it must be positive.", next_step="for instance: --wait 3m")
    images = given.flags.get("load", ())
    if "" in images:
        raise UsageError("--load needs an image.", next_step="for instance: --load mine:dev")
    given.one_of("provider", (AUTO, *PROVIDERS))
    return Wish(
        image=given["image"],
        config=_there(given["config"], "--config", "file"),
        wait=wait,
        keep_on_failure=given["keep_on_failure"],
        bin_dir=_there(given["bin_dir"], "--bin-dir", "folder"),
        offline=given["offline"],
        nodes=nodes,
        load=bool(images),
    )


def _there(word: str, flag: str, what: str) -> Path | None:
    if not word:
        return None
    path = Path(word).expanduser().absolute()
    if not (path.is_dir() if what == "folder" else path.is_file()):
        raise UsageError(f"There is no {what} {word!r}.", tried=str(path), next_step=f"name one with {flag}")
    return path


def progress(app: App, given: Given, steps: Sequence[str], clock: Clock) -> Progress:
    """The steps of a verb as its flags want them told; machines get the error as an object too."""
    form = given.one_of("progress", FORMS)
    app.machine = form == "json"
    return Progress(app, "quiet" if given["quiet"] else form, steps, clock)


def entry_of(book: Book, name: str) -> Entry:
    """The cluster of that name; NoCluster where it is none of ours."""
    book.check(name)
    entry = book.find(name)
    if entry is None:
        raise _none(book, f"There is no cluster {name!r} of ours.", name)
    return entry


def ready(book: Book, name: str) -> Entry:
    """One that was made to its end."""
    entry = entry_of(book, name)
    if entry.phase is not Phase.READY:
        state = "made" if entry.phase is Phase.CREATING else "taken away"
        if other := _changing(book, name):
            raise ClusterError(
                f"Cluster {name!r} is not {state} to the end yet: process {other} is at it.",
                next_step="wait for that one, and repeat the command",
            )
        raise ClusterError(
            f"Cluster {name!r} was not {state} to the end.",
            next_step=f"{down(name)} removes what is left of it, {up(name)} makes it anew",
        )
    return entry


def named(given: Given, words: Sequence[str]) -> str:
    """The name that a word says, or else --name, which the environment may; "" for neither."""
    if len(words) > 1:
        raise UsageError(f"One name at a time, not {' '.join(words)}.", next_step="repeat it for each of them")
    return words[0] if words else str(given["name"])


def only(book: Book) -> str:
    """The one that is meant without a name: `ctrl`, or the only one; "" where there is none at all."""
    found = names(book) or locks(book)
    if DEFAULT in found:
        return DEFAULT
    if len(found) > 1:
        raise UsageError("There are several clusters of ours.", next_step=f"name one of: {', '.join(found)}")
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
        return f"cluster {name} stays; to take it away: {down(name)}"
    return f"cluster {name} is not complete; to take away what is left: {down(name)}"


def stopping(progress: Progress) -> Callable[[str], None]:
    """Says, told the name of the first signal, what the next one does."""

    def say(name: str) -> None:
        asked = "stopping; Ctrl-C again" if name == "SIGINT" else f"stopping, as {name} asks; a second one"
        progress.say(f"{asked} ends at once")

    return say


def waiting(book: Book, name: str, progress: Progress) -> Note:
    """Says for whom we wait, and what helps where that one does nothing."""

    def say(text: str) -> None:
        pid = book.holder(name)
        if pid is not None and is_stopped(pid):
            text += f"; that one is stopped, as Ctrl-Z does: fg in its terminal, or kill -CONT {pid}"
        progress.say(text)

    return say


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
    others = f"there are: {', '.join(found)}" if found else f"{up(name)} makes it"
    return NoCluster(message, next_step=nearest(name, found) or others)


def check_kubeconfig(app: App, entry: Entry | None) -> None:
    """Raise where contexts of others would go with the cluster's own kubeconfig.

    A shell of `cluster env` has it for KUBECONFIG, and whoever logs in to another cluster there has it written to.
    """
    if entry is None or not entry.server:
        return
    _, theirs = contexts_of(app, entry)
    if theirs:
        removal = command("kubectl", "--kubeconfig", entry.kubeconfig, "config", "delete-context", theirs[0])
        raise Refused(
            f"The kubeconfig of cluster {entry.name!r} holds contexts of others, which would go with it: "
            f"{', '.join(map(repr, theirs))}.",
            tried=str(entry.kubeconfig),
            next_step=f"copy that file if you need them; then, for each: {removal}",
        )


def contexts_of(app: App, entry: Entry) -> tuple[list[str], list[str]]:
    """The contexts in the cluster's own kubeconfig that mean it, and those that mean others."""
    from kubectl_ctrl.kubeconfig import files

    try:
        own = files.read(str(entry.kubeconfig), app.user.environ, app.user.home)
        at = {name: own.clusters.get(one.text("cluster")) for name, one in own.contexts.items()}
        servers = {name: cluster.text("server") for name, cluster in at.items() if cluster}
    except ConfigError:  # one that is of no use to anybody, or not there yet
        return [], []
    its_own = {entry.server, servers.get(entry.context)}
    here = [name for name, server in servers.items() if server in its_own]
    return here, [name for name in servers if name not in here]
