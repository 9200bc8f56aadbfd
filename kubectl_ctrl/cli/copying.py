"""What a command that is to be copied has to say so that it means the same cluster and namespace as this one."""

from __future__ import annotations

from typing import TypedDict

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.command import Given
from kubectl_ctrl.client.kubeconfig import ConfigFlags, ca_fingerprint, load
from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.model.record import Cluster, Run

_KEPT = ("--kubeconfig", "--server", "--cluster", "--user", "--as", "--as-group")
_SOURCES = ("--from", "--recorded-cluster")


class Said(TypedDict):
    """The parts of a Case that say where."""

    flags: tuple[str, ...]
    context: str
    source: tuple[str, ...]


class Places:
    """What equals the current context and its namespace need not be said; what differs must be."""

    def __init__(self, app: App, given: Given, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kept = tuple(flag for flag in given.typed if flag.partition("=")[0] in _KEPT)
        self._source = tuple(flag for flag in given.typed if flag.partition("=")[0] in _SOURCES)
        self._current, self._namespace = "", ""
        try:
            plain = load(ConfigFlags(kubeconfig=given["kubeconfig"]), app.environ, app.home)
            if (plain.server, ca_fingerprint(plain)) in cluster.servers:
                self._current, self._namespace = plain.context or "", plain.namespace or "default"
        except ConfigError:
            pass

    def of(self, namespace: str, run: Run | None) -> Said:
        contexts = self._cluster.contexts
        context = self._current or (run.context if run is not None else contexts[0] if contexts else "")
        flags = list(self._kept)
        if namespace and (not self._current or namespace != self._namespace):
            flags.append(f"--namespace={namespace}")
        if context and not self._current:
            flags.append(f"--context={context}")
        return Said(flags=tuple(flags), context=context, source=self._source)
