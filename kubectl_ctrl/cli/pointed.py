"""Where kubectl's own flags and the kubeconfig point, before anyone is asked."""

from __future__ import annotations

from dataclasses import fields

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.command import Given
from kubectl_ctrl.client.kubeconfig import ConfigFlags, Resolved, load


def pointed(app: App, given: Given) -> Resolved:
    """The server, its namespace and how to get in; ConfigError where they say nothing that can be used."""
    # kubectl's flags as the loader wants them: the parameters carry the names of its fields.
    flags = ConfigFlags(**{one.name: given[one.name] for one in fields(ConfigFlags)})
    return load(flags, app.environ, app.home)
