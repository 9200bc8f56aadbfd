"""The flags of suggested commands, so that they mean the same cluster, namespace and recording as this one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.findings.account import Risk, Try
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, ca_fingerprint, load
from kubectl_ctrl.model.record import RecordedCluster
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.target.choice import managed_contexts, pin_apart
from kubectl_ctrl.target.pin import Pin, joined
from kubectl_ctrl.value import replace

_KEPT = ("--kubeconfig", "--server", "--cluster", "--user", "--as", "--as-group")
_SOURCES = ("--from", "--recorded-cluster")


class Flags(TypedDict):
    """Two fields of a Case."""

    flags: tuple[str, ...]
    source: tuple[str, ...]


class Places:
    """Flags for a namespace and a cluster, only where they differ from the current context.

    A command that changes the cluster always has the context: it must not follow a switch of the current one.
    """

    def __init__(self, query: Query, cluster: RecordedCluster) -> None:
        kept = [flag for flag in query.pointers if flag.partition("=")[0] in _KEPT]
        self._source = tuple(flag for flag in query.typed if flag.partition("=")[0] in _SOURCES)
        self._current, self._namespace = "", ""
        try:
            plain = load(ConfigFlags(kubeconfig=query.target.flags.kubeconfig), query.user.environ, query.user.home)
            if (plain.server, ca_fingerprint(plain)) in cluster.servers:
                self._current, self._namespace = plain.context or "", plain.namespace or "default"
        except ConfigError:
            pass
        context = self._current or next(iter(cluster.contexts), "")
        self._changing = _pin_of(query, kept, context)
        self._reading = joined(kept) if self._current else self._changing

    def of(self, namespace: str) -> Flags:
        needed = bool(namespace) and not (self._current and namespace == self._namespace)
        return Flags(flags=(f"--namespace={namespace}",) if needed else (), source=self._source)

    def pinned(self, tries: Iterable[Try]) -> tuple[Try, ...]:
        """The commands with the flags of the cluster."""
        pins = ((one, self._reading if one.risk is Risk.READ else self._changing) for one in tries)
        return tuple(replace(one, command=pin.into(one.command)) for one, pin in pins)


def _pin_of(query: Query, kept: list[str], context: str) -> Pin:
    """The flags for that context; one of a managed cluster is not in the user's kubeconfig."""
    flags = ConfigFlags(kubeconfig=query.target.flags.kubeconfig, context=context)
    try:
        apart = pin_apart(
            flags,
            load(flags, query.user.environ, query.user.home, managed=lambda: managed_contexts(Registry.of(query.user))),
        )
    except ConfigError:
        apart = Pin()
    return apart or joined([*kept, f"--context={context}"] if context else kept)
