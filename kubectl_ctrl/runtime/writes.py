"""Sends an attempt's writes and notes their answers before the reconciler continues.

Each answer goes to the caches, so that every later read shows it, and to the echoes, so that its event triggers
nothing.
"""

from __future__ import annotations

import copy
from typing import Any, Protocol, TypeVar

import orjson

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import DeleteOptions, PatchKind, WriteOptions
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import NotFound
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of, version_of
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.runtime.echoes import AwaitedEcho, Echoes
from kubectl_ctrl.runtime.notes import Notes

T = TypeVar("T")


class Overlays(Protocol):
    """The overlays of the informers, for own writes."""

    def wrote(self, resource: Resource, obj: Obj) -> None: ...

    def removed(self, resource: Resource, key: Key, uid: str, version: str) -> None: ...


class Writes:
    """The requests of one attempt's `ctx.write`."""

    def __init__(
        self, client: Client, overlays: Overlays, echoes: Echoes, notes: Notes, *, manager: str, clock: Clock
    ) -> None:
        self.client = client
        self.notes = notes
        self.manager = manager
        self._overlays = overlays
        self._echoes = echoes
        self._clock = clock

    async def create(self, resource: Resource, obj: Obj) -> Obj:
        answer = await self.client.create(resource, _kept(obj), WriteOptions(manager=self.manager))
        self.landed(resource, answer, known="", tied=True)
        return answer

    async def apply(self, ref: ObjectRef, body: Obj, *, live: Obj, manager: str = "", force: bool = True) -> Obj:
        """Server-side apply; `live` is the object on which the decision is based."""
        known = version_of(live)
        options = WriteOptions(manager=manager or self.manager, force=force, old_version=known, before=live)
        sent = _kept(body)
        answer = await self.client.patch(ref, sent, PatchKind.APPLY, options)
        self.landed(ref.resource, answer, known=known, tied=False, sent=sent)
        return answer

    async def patch(self, ref: ObjectRef, body: Obj | list[Obj], *, live: Obj, tied: bool = True) -> Obj:
        """A patch; if `tied`, its body requires the version of `live`."""
        known = version_of(live)
        kind = PatchKind.JSON if isinstance(body, list) else PatchKind.MERGE
        options = WriteOptions(manager=self.manager, old_version=known, before=live)
        answer = await self.client.patch(ref, _kept(body), kind, options)
        self.landed(ref.resource, answer, known=known, tied=tied)
        return answer

    async def try_out(self, ref: ObjectRef, body: Obj | list[Obj], kind: PatchKind) -> Obj:
        """The result of a patch, as a dry run."""
        options = WriteOptions(manager=self.manager, dry_run=True, force=kind is PatchKind.APPLY)
        return await self.client.patch(ref, _kept(body), kind, options)

    async def delete(self, ref: ObjectRef, options: DeleteOptions) -> None:
        """Delete; no error if the object is gone already."""
        known = version_of(options.before) if options.before is not None else options.version
        try:
            answer = await self.client.delete(ref, options)
        except NotFound:  # also Replaced: the object of that UID is gone
            self.gone(ref, options.uid, known)
            return
        if uid_of(answer) == options.uid and _stays(answer):
            self.landed(ref.resource, answer, known=options.version, tied=False)
        else:
            self.gone(ref, options.uid, known)

    def saw(self, resource: Resource, obj: Obj) -> None:
        """A live read may be newer than the cache: later reads must not be older."""
        self._overlays.wrote(resource, obj)

    def gone(self, ref: ObjectRef, uid: str, version: str = "") -> None:
        """The server has no object of that UID any more; `version` is its last known one, if any."""
        self._overlays.removed(ref.resource, ref.key, uid, version)

    def landed(self, resource: Resource, answer: Obj, *, known: str, tied: bool, sent: Obj | None = None) -> None:
        """Note an answer; `known` is the version before, and `tied`: the server compared it."""
        version, uid = version_of(answer), uid_of(answer)
        if is_deleting(answer) and not _stays(answer):
            self._overlays.removed(resource, key_of(answer), uid, version)
        else:
            self._overlays.wrote(resource, answer)
        if version == known:
            return  # nothing changed, so no event follows
        self._echoes.wrote(
            AwaitedEcho(
                request=self.notes.start.request,
                attempt=self.notes.attempt,
                resource=resource,
                uid=uid,
                version=version,
                at=self._clock.elapsed(),
                certain=tied and self.notes.answered_by_write(uid, version),
                sent=sent,
            )
        )


def _kept(body: T) -> T:
    """A copy: the record of a call refers to its body, and the reconciler may change its object later."""
    try:
        copied: T = orjson.loads(orjson.dumps(body))  # eight times as quick
    except (TypeError, ValueError, RecursionError):
        return copy.deepcopy(body)  # the client reports the error in it
    return copied


def _stays(obj: Obj) -> bool:
    """The object in the answer to a delete still exists."""
    meta: dict[str, Any] = obj["metadata"]
    return is_deleting(obj) and bool(meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"))
