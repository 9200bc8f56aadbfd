"""The caches of a plan: one list of each type, updated with the planned state of written objects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from random import Random

from kubectl_ctrl.cache.projection import StringPool
from kubectl_ctrl.cache.replica import Replica
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import ListQuery
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import NotInstalled, NotServed
from kubectl_ctrl.model.objects import Key, Obj, key_of, uid_of
from kubectl_ctrl.model.resources import Resource

_log = logging.getLogger(__name__)


class Snapshot:
    """One list per selection. Own writes are visible at once; there are no other updates."""

    def __init__(self, replicas: Mapping[Resource, Replica]) -> None:
        self.replicas = replicas

    def wrote(self, resource: Resource, obj: Obj) -> None:
        if (replica := self.replicas.get(resource)) is not None:
            replica.wrote(obj)

    def removed(self, resource: Resource, key: Key, uid: str, version: str = "") -> None:
        if (replica := self.replicas.get(resource)) is not None:
            replica.removed(key, uid, version)

    def planned(self, resource: Resource, state: Obj, gone: bool) -> None:
        """Show the planned state of an object, or its planned deletion."""
        if gone:
            self.removed(resource, key_of(state), uid_of(state))
        else:
            self.wrote(resource, state)

    def __repr__(self) -> str:
        return f"Snapshot({', '.join(map(repr, self.replicas.values()))})"


async def taken(
    selections: Mapping[Resource, Selection],
    client: Client,
    *,
    manager: str,
    clock: Clock,
    rng: Random,
    missing: Callable[[Resource], NotInstalled],
) -> Snapshot:
    """The current objects; raises the error of `missing` for a type that the server does not serve."""
    texts, managers = StringPool(), frozenset({manager})
    replicas = {}
    for resource, selection in selections.items():
        query = ListQuery(
            namespace=selection.namespace,
            labels=selection.labels,
            fields=selection.fields,
            metadata_only=selection.metadata_only,
        )
        replica = Replica(selection, managers=managers, texts=texts, clock=clock, rng=rng, read_only_objects=True)
        staging = replica.stage()
        try:
            listed = await client.list(selection.resource, query)
        except NotServed as error:
            raise missing(resource) from error
        for obj in listed.items:
            replica.add(staging, obj)
        for poisoned in listed.poisoned:
            extra = {"action": "plan.poisoned"}
            _log.warning("An object of %s is unusable and omitted: %s", resource, poisoned.why, extra=extra)
        replica.replace(staging, listed.version)
        replicas[resource] = replica
    return Snapshot(replicas)
