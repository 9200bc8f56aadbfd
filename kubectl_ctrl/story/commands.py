"""What a command that is to be copied has to say so that it means the same cluster and namespace as this one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from kubectl_ctrl.clusters.registry import Registry
from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.findings.account import Risk, Try
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, ca_fingerprint, load
from kubectl_ctrl.model.record import Cluster
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.target.choice import managed_contexts, pin_apart
from kubectl_ctrl.target.pin import Pin, joined
from kubectl_ctrl.value import replace

_KEPT = ("--kubeconfig", "--server", "--cluster", "--user", "--as", "--as-group")
_SOURCES = ("--from", "--recorded-cluster")


class Said(TypedDict):
    """The parts of a Case that say where."""

    flags: tuple[str, ...]
    source: tuple[str, ...]


class Places:
    """What equals the current context and its namespace need not be said; what differs must be.

    A command that changes something says its context in any case: it must not follow a switch of the current one.
    """

    def __init__(self, query: Query, cluster: Cluster) -> None:
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

    def of(self, namespace: str) -> Said:
        told = bool(namespace) and not (self._current and namespace == self._namespace)
        return Said(flags=(f"--namespace={namespace}",) if told else (), source=self._source)

    def pinned(self, tries: Iterable[Try]) -> tuple[Try, ...]:
        """The commands, made to mean the cluster."""
        return tuple(replace(one, command=self._pin(one.risk).into(one.command)) for one in tries)

    def _pin(self, risk: Risk) -> Pin:
        return self._reading if risk is Risk.READ else self._changing


def _pin_of(query: Query, kept: list[str], context: str) -> Pin:
    """What means that context; it may be one of ours, which kubectl does not know by that name."""
    flags = ConfigFlags(kubeconfig=query.target.flags.kubeconfig, context=context)
    try:
        apart = pin_apart(
            flags,
            load(flags, query.user.environ, query.user.home, managed=lambda: managed_contexts(Registry.of(query.user))),
        )
    except ConfigError:
        apart = Pin()
    return apart or joined([*kept, f"--context={context}"] if context else kept)
