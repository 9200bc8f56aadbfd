"""--name of the verbs for controllers on this machine: a managed cluster instead of the current context's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.value import replace

if TYPE_CHECKING:
    from kubectl_ctrl.cli.app import App
    from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
    from kubectl_ctrl.runs.local import SelectedCluster

NAME = Flag(
    "--name",
    value="NAME",
    default="",
    help="The managed cluster to use; by default, the cluster of the current context.",
)

# The flags that select a cluster, as --name does.
_POINTERS = ("--context", "--cluster", "--server")


def where(app: App, given: ParsedCommandLine) -> SelectedCluster:
    """The cluster of --name, else that of kubectl's flags and the kubeconfig, as for every other verb."""
    from kubectl_ctrl.clusters import names
    from kubectl_ctrl.runs import local

    typed = {flag.partition("=")[0] for flag in given.typed}
    pointers = [flag for flag in _POINTERS if flag in typed]
    if pointers and "--name" in typed:
        raise UsageError(f"--name and {pointers[0]} exclude each other.", next_step="leave one of them out")
    if given["name"] and not pointers:
        return replace(local.managed(names.entry_of(app.registry, given["name"])), named=True)
    return replace(local.selected(app.user, app.pointed(given)), named=bool(pointers))
