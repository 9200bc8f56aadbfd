"""Where kubectl's own flags and the kubeconfig point, before anyone is asked."""

from __future__ import annotations

import os
from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.clusters.registry import Book, Entry, Phase
from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.kubeconfig import files as kubefiles
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, Resolved, load
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.target.pin import Pin, as_typed, by_file

# Of these each alone says which cluster is meant.
_POINTERS = ("context", "cluster", "server", "user")


def pointed(app: App, given: Given) -> Resolved:
    """The server, its namespace and how to get in; ConfigError where they say nothing that can be used.

    After the user's files, which win, --context also finds clusters of ours; and where there is no current-context at
    all, the only cluster of ours is meant. Not so where a shell still means one that is gone: no other stands for it.
    """
    # kubectl's flags as the loader wants them: the parameters carry the names of its fields.
    flags = ConfigFlags(**{name: given[name] for name in ConfigFlags.__struct_fields__})
    gone = gone_cluster(app, given)
    app.pin = as_typed(given.saying("kubeconfig", *_POINTERS))  # kubectl does not know our variables
    try:
        resolved = load(
            flags, app.user.environ, app.user.home, apart=lambda: {} if gone else contexts_of_ours(app.book)
        )
    except ConfigError as error:
        if not gone:
            raise
        raise ConfigError(
            f"Cluster {gone!r} is not there any more, and the kubeconfig that is asked for was its own.",
            tried=error.message,
            next_step=f"{ctrl('up', '--name', gone)} makes a new one; unset KUBECONFIG goes back to your own contexts",
        ) from error
    app.pin = pin_apart(flags, resolved) or app.pin
    return resolved


def pin_apart(asked: ConfigFlags, resolved: Resolved) -> Pin | None:
    """What means a cluster that stands apart from the user's files; None where they have it."""
    file = resolved.origin.flags.kubeconfig
    return by_file(Path(file), resolved.context or "", known=True) if file != asked.kubeconfig else None


def kubectl_at(resolved: Resolved) -> tuple[str, ...]:
    """`kubectl`, with the flags by which it gets there: it knows no cluster of ours by its context alone."""
    file = ("--kubeconfig", resolved.origin.flags.kubeconfig) if resolved.origin.flags.kubeconfig else ()
    context = ("--context", resolved.context) if resolved.context else ()
    return ("kubectl", *file, *context)


def pointed_at(app: App, entry: Entry) -> Resolved:
    """A cluster of ours through its own kubeconfig: nothing that the user's files or current-context say matters."""
    if not entry.kubeconfig.exists():
        raise ConfigError(
            f"Cluster {entry.name!r} has no kubeconfig yet: its making did not end.",
            tried=str(entry.kubeconfig),
            next_step=f"{ctrl('up', '--name', entry.name)} makes it anew, {ctrl('down', entry.name)} removes it",
        )
    if entry.kubeconfig not in _named(app):
        app.pin = by_file(entry.kubeconfig, entry.context)
    return load(ConfigFlags(kubeconfig=str(entry.kubeconfig), context=entry.context), app.user.environ, app.user.home)


def _named(app: App) -> list[Path]:
    return [Path(name).absolute() for name in app.user.environ.get("KUBECONFIG", "").split(os.pathsep) if name]


def contexts_of_ours(book: Book) -> dict[str, Path]:
    """The contexts of clusters that we made and that are there, each with its kubeconfig."""
    return {entry.context: entry.kubeconfig for entry in book.entries() if entry.phase is Phase.READY}


def gone_cluster(app: App, given: Given) -> str:
    """The cluster of ours that was taken away while this shell still points to it; "" where it points elsewhere.

    `cluster env` made KUBECONFIG name a file that went with its cluster.
    """
    if given["context"] or given["server"]:
        return ""
    folder = app.book.folder.absolute()
    files = [Path(given["kubeconfig"]).absolute()] if given["kubeconfig"] else _named(app)
    return next((file.parent.name for file in files if file.parent.parent == folder and not file.exists()), "")


def means_nothing(app: App, given: Given) -> bool:
    """Whether neither flags nor files name a cluster at all, rather than a wrong one, or one that is gone."""
    if any(given[name] for name in _POINTERS) or gone_cluster(app, given):
        return False
    try:
        merged = kubefiles.read(given["kubeconfig"], app.user.environ, app.user.home)
    except ConfigError:
        return False
    return not merged.current_context
