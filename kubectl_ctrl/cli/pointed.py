"""Where kubectl's own flags and the kubeconfig point, before anyone is asked."""

from __future__ import annotations

from dataclasses import fields

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.command import Given
from kubectl_ctrl.client.kubeconfig import ConfigFlags, Resolved, load
from kubectl_ctrl.clusters.book import Entry
from kubectl_ctrl.errors import ConfigError

# What a command line may still say where the cluster is given: where in it, how patiently, as whom.
_PLACE = ("namespace", "cache_dir", "request_timeout", "disable_compression")
_WHOM = ("as_user", "as_uid", "as_group", "as_user_extra")


def pointed(app: App, given: Given) -> Resolved:
    """The server, its namespace and how to get in; ConfigError where they say nothing that can be used."""
    # kubectl's flags as the loader wants them: the parameters carry the names of its fields.
    flags = ConfigFlags(**{one.name: given[one.name] for one in fields(ConfigFlags)})
    return load(flags, app.environ, app.home)


def pointed_at(app: App, entry: Entry, given: Given | None = None) -> Resolved:
    """A cluster of ours through its own kubeconfig: nothing that the user's files or current-context say matters."""
    if not entry.kubeconfig.exists():
        raise ConfigError(
            f"Cluster {entry.name!r} has no kubeconfig yet: its making did not end.",
            tried=str(entry.kubeconfig),
            next_step=f"kubectl ctrl up --name {entry.name} makes it anew, kubectl ctrl down {entry.name} removes it",
        )
    kept = {name: given.flags[name] for name in (*_PLACE, *_WHOM) if name in given.flags} if given else {}
    flags = ConfigFlags(kubeconfig=str(entry.kubeconfig), context=entry.context, **kept)
    return load(flags, app.environ, app.home)
