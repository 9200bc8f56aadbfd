"""The way of a write: read and compute, admission, commit if the object is still the same, else once more."""

from __future__ import annotations

from collections.abc import Coroutine
from random import Random
from typing import Any, Protocol, TypeVar

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of, version_of
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.sandbox import answers, options, scales
from kubectl_ctrl.sandbox.drafts import Draft, Drafter
from kubectl_ctrl.sandbox.requests import ParsedRequest
from kubectl_ctrl.sandbox.storage import Storage
from kubectl_ctrl.value import Value, field

_TRIES = 5
_Result = TypeVar("_Result")


class Write(Value, kw_only=True):
    """One accepted write, for assertions; not a dry run."""

    at: float  # wall time
    verb: str  # create, update, patch, apply, delete
    resource: Resource
    key: Key
    subresource: str
    manager: str
    user_agent: str
    audit_id: str
    uid: str
    old_version: str
    new_version: str  # equal to the old version when nothing changed

    @property
    def changed(self) -> bool:
        return self.old_version != self.new_version


class WriteAnswer(Value, kw_only=True):
    """The answer to a write."""

    body: Obj
    code: int = 200
    warnings: list[str] = field(default_factory=list)


class Admission(Protocol):
    """What may change or refuse a draft before it is committed."""

    async def mutate(self, ask: ParsedRequest, draft: Draft) -> Obj | None:
        """The changed object, None without a change."""

    async def validate(self, ask: ParsedRequest, draft: Draft) -> None:
        """Raises the refusal of a draft."""


def at_once(work: Coroutine[Any, Any, _Result]) -> _Result:
    """The result of a coroutine that has nothing to wait for."""
    try:
        work.send(None)
    except StopIteration as done:
        result: _Result = done.value
        return result
    work.close()
    raise RuntimeError("This write waits for admission: await `handle(request)`.")


class StorageWriter:
    """The writing verbs. `log` has every accepted write."""

    def __init__(self, storage: Storage, clock: Clock, random: Random, *, full: bool = False) -> None:
        self._storage = storage
        self._clock = clock
        self.random = random  # for generated names
        self._drafter = Drafter(storage, clock, random, full=full)
        self.checks = self._drafter.checks
        self.admission: Admission | None = None
        self.log: list[Write] = []

    async def write(self, ask: ParsedRequest) -> WriteAnswer:
        """The answer to a committed write. A write overtaken by another one is computed again."""
        ask = options.checked_write(ask)
        for _ in range(_TRIES):
            draft = self._drafter.draft(ask)
            if self.admission is None:
                return self._commit(ask, self._drafter.checked(ask, draft))
            draft = await self._admitted(self.admission, ask, draft)
            if self._is_current(ask, draft):
                return self._commit(ask, draft)
        raise answers.conflict(ask.resource, ask.name)

    async def _admitted(self, admission: Admission, ask: ParsedRequest, draft: Draft) -> Draft:
        new = await admission.mutate(ask, draft)
        if new is not None and draft.new is not None:
            draft = self._drafter.mutated(ask, draft, new)
        draft = self._drafter.checked(ask, draft)
        await admission.validate(ask, draft)
        return draft

    def _is_current(self, ask: ParsedRequest, draft: Draft) -> bool:
        stored = self._storage.get(ask.kind.table, draft.key)
        if stored is None or draft.old is None:
            return stored is draft.old
        return version_of(stored) == version_of(draft.old)

    def new_uid(self) -> str:
        return self._drafter.new_uid()

    # -- storing

    def _commit(self, ask: ParsedRequest, draft: Draft) -> WriteAnswer:
        if draft.new is None:
            return WriteAnswer(body=self._remove(ask, draft))
        body = draft.new if draft.new is draft.old else self._store(ask, draft.old, draft.new)
        body = scales.scale_of(ask.kind, body) if ask.subresource == "scale" else body
        return WriteAnswer(body=body, code=draft.code, warnings=draft.warnings)

    def _remove(self, ask: ParsedRequest, draft: Draft) -> Obj:
        old = draft.old or {}
        if not ask.dry_run:
            self._note(ask, old, version_of(self._storage.remove(ask.kind.table, draft.key)))
        group, plural = ask.resource.group, ask.resource.plural
        details = {"name": draft.key.name, "group": group, "kind": plural, "uid": uid_of(old)}
        kept = {key: value for key, value in details.items() if value}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": kept}

    def _store(self, ask: ParsedRequest, old: Obj | None, new: Obj) -> Obj:
        """Store it, unless that changes nothing; an object without its last finalizer is deleted instead."""
        if ask.kind.view is not None:
            old = self._storage.get(ask.kind.table, key_of(new))
            new = ask.kind.view.stored_form(new, old or {})
        new = {**new, "apiVersion": ask.kind.storage_api_version}
        if old is not None and same(_timeless(old), _timeless(new)):
            if not ask.dry_run:
                self._note(ask, old, version_of(old))
            return old
        if ask.dry_run:
            return new
        if is_deleting(new) and not new["metadata"].get("finalizers") and _can_go(new):
            self._note(ask, new, version_of(self._storage.remove(ask.kind.table, key_of(new))))
            return new
        stored = self._storage.put(ask.kind.table, {**new, "metadata": dict(new["metadata"])})
        self._note(ask, stored, version_of(stored), "" if old is None else version_of(old))
        return stored

    def _note(self, ask: ParsedRequest, obj: Obj, version: str, before: str | None = None) -> None:
        apply = ask.headers.get("content-type", "").startswith("application/apply-patch")
        self.log.append(
            Write(
                at=self._clock.now(),
                verb="apply" if ask.verb == "patch" and apply else ask.verb,
                resource=ask.resource,
                key=key_of(obj),
                subresource=ask.subresource,
                manager=ask.manager,
                user_agent=ask.headers.get("user-agent", ""),
                audit_id=ask.headers.get("audit-id", ""),
                uid=uid_of(obj),
                old_version=version_of(obj) if before is None else before,
                new_version=version,
            )
        )

    def __repr__(self) -> str:
        return f"StorageWriter(writes={len(self.log)})"


def _can_go(obj: Obj) -> bool:
    """A namespace also has finalizers in its spec, and a pod may have a grace period left."""
    return not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers")) and not obj[
        "metadata"
    ].get("deletionGracePeriodSeconds")


def _timeless(obj: Obj) -> Obj:
    """The object without the times in its managedFields, which alone are no change."""
    entries = [{**entry, "time": ""} for entry in obj["metadata"].get("managedFields") or ()]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}
