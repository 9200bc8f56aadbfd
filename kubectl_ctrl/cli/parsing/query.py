"""The query for a recording, from the flags of a command line."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, Resolved
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.target.effect import CommandEffect

if TYPE_CHECKING:
    from kubectl_ctrl.client.client import Client
    from kubectl_ctrl.clock import Clock


def query_of(app: App, given: ParsedCommandLine) -> Query:
    """The query of a verb that has the flags LOOKING_BACK."""
    return Query(
        user=app.user,
        target=CommandTarget(app, given),
        named_file=given["from"],
        recorded_cluster=given["recorded_cluster"],
        namespace=given["namespace"],
        everywhere=bool(given.flags.get("all_namespaces")),
        offline=bool(given.flags.get("offline")),
        typed=given.typed,
        pointers=tuple(given.saying("kubeconfig", "server", "cluster", "user")),
    )


class CommandTarget:
    """The cluster of this command line. Resolving it also makes suggested commands select it."""

    def __init__(self, app: App, given: ParsedCommandLine) -> None:
        self._app = app
        self._given = given

    @property
    def flags(self) -> ConfigFlags:
        return self._given.cluster_flags

    def resolved(self) -> Resolved:
        return self._app.pointed(self._given)

    def readable(self) -> Resolved:
        return self._app.meant(self._given, CommandEffect.READ)

    async def connected(self, resolved: Resolved, clock: Clock) -> Client:
        return await self._app.connected(resolved, clock=clock, rng=Random())  # noqa: S311

    def briefly(self, error: CtrlError) -> str:
        return self._app.briefly(error)
