"""The writing verbs: each takes an Ask, commits or refuses, and gives the answer's body."""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of, version_of
from kubectl_ctrl.model.patches import apply_json, apply_merge, same
from kubectl_ctrl.model.resources import NAMESPACES, Resource
from kubectl_ctrl.testing import answers, rules
from kubectl_ctrl.testing.asks import Ask
from kubectl_ctrl.testing.storage import Storage

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # the letters of generated names
_MERGE = "application/merge-patch+json"
_JSON = "application/json-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write that was let through, for tests to look at; a dry run is none."""

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
    new_version: str  # equal to the old one when nothing changed

    @property
    def changed(self) -> bool:
        return self.old_version != self.new_version


class Writer:
    """See the module. `forget` is told of namespaces and CRDs by listening to the storage, not from here."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._made = 0
        self.log: list[Write] = []

    def create(self, ask: Ask) -> Obj:
        obj = ask.obj()
        rules.check_place(ask, obj)
        self._name(obj)
        rules.check_name(ask.kind, obj)
        return self._create(ask, obj)

    def _create(self, ask: Ask, obj: Obj) -> Obj:
        key = key_of(obj)
        self._check_namespace(ask, key)
        if self._storage.get(ask.kind.table, key) is not None:
            raise answers.already_exists(ask.resource, key.name)
        obj = rules.newborn(ask.kind, obj, uid=self._new_uid(), now=self._now())
        return self._commit(ask, None, self._finish(ask, None, obj))

    def update(self, ask: Ask) -> Obj:
        obj = ask.obj()
        rules.check_place(ask, obj)
        old = self._storage.get(ask.kind.table, ask.key)
        if old is None:
            return self._create_by_update(ask, obj)
        return self._replace(ask, old, obj)

    def _create_by_update(self, ask: Ask, obj: Obj) -> Obj:
        if uid_of(obj):
            raise answers.uid_conflict(ask.resource, ask.name, uid_of(obj), "")
        if ask.subresource or not ask.kind.create_on_update:
            raise answers.not_found(ask.resource, ask.name)
        obj["metadata"].pop("resourceVersion", None)
        return self._create(ask, obj)

    def patch(self, ask: Ask) -> Obj:
        kind = ask.headers.get("content-type", "").partition(";")[0]
        offered = [_JSON, _MERGE, *([] if ask.kind.custom else [_STRATEGIC]), _APPLY]
        if kind not in offered:
            raise answers.unsupported_media(offered)
        old = self._storage.get(ask.kind.table, ask.key)
        if old is None:
            raise answers.not_found(ask.resource, ask.name)
        body = ask.body()
        try:
            new = apply_json(old, body) if kind == _JSON else apply_merge(old, body)
        except UsageError as error:
            raise answers.unprocessable("the server rejected our request due to an error in our request") from error
        new = rules.clone(new)
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise answers.bad_request("the patched object is unrecognized (must be of type object)")
        rules.check_place(ask, new)
        return self._replace(ask, old, new)

    def _replace(self, ask: Ask, old: Obj, new: Obj) -> Obj:
        rules.check_versions(ask.kind, ask, old, new)
        new = rules.successor(ask.kind, old, new, ask.subresource)
        return self._commit(ask, old, self._finish(ask, old, new))

    def delete(self, ask: Ask) -> Obj:
        old = self._storage.get(ask.kind.table, ask.key)
        if old is None:
            raise answers.not_found(ask.resource, ask.name)
        options = ask.body() or {}
        self._check_preconditions(ask, old, options.get("preconditions") or {})
        finalizers = _finalizers(ask, old, options)
        grace = _grace(ask, old, options)
        if not finalizers and not grace and ask.resource != NAMESPACES:
            return self._remove(ask, old)
        if is_deleting(old):
            return old
        now = rfc3339(self._clock.now() + grace)
        return self._commit(ask, old, rules.doomed(ask.kind, old, now=now, grace=grace, finalizers=finalizers))

    def _check_preconditions(self, ask: Ask, old: Obj, wanted: Obj) -> None:
        uid, version = wanted.get("uid"), wanted.get("resourceVersion")
        if uid and uid != uid_of(old):
            raise answers.uid_conflict(ask.resource, ask.name, uid, uid_of(old))
        if version and version != version_of(old):
            raise answers.version_conflict(ask.resource, ask.name, version, version_of(old))

    def _remove(self, ask: Ask, old: Obj) -> Obj:
        version = version_of(old)
        if not ask.dry_run:
            version = version_of(self._storage.remove(ask.kind.table, key_of(old)))
            self._note(ask, old, version)
        group, plural = ask.resource.group, ask.resource.plural
        details = {"name": old["metadata"]["name"], "group": group, "kind": plural, "uid": uid_of(old)}
        kept = {key: value for key, value in details.items() if value}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": kept}

    def _finish(self, ask: Ask, old: Obj | None, new: Obj) -> Obj:
        return new

    def _commit(self, ask: Ask, old: Obj | None, new: Obj) -> Obj:
        """Store it, unless that would change nothing; an object whose last finalizer went is removed instead."""
        if old is not None and same(old, new):
            if not ask.dry_run:
                self._note(ask, old, version_of(old))
            return old
        if ask.dry_run:
            return new
        if is_deleting(new) and not new["metadata"].get("finalizers") and _can_go(new):
            self._note(ask, new, version_of(self._storage.remove(ask.kind.table, key_of(new), new)))
            return new
        before = version_of(new)
        new["apiVersion"] = ask.kind.storage_api_version
        stored = self._storage.put(ask.kind.table, {**new, "metadata": dict(new["metadata"])})
        self._note(ask, stored, version_of(stored), before)
        return stored

    def _note(self, ask: Ask, obj: Obj, version: str, before: str | None = None) -> None:
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

    def _check_namespace(self, ask: Ask, key: Key) -> None:
        if not ask.resource.namespaced:
            return
        namespace = self._storage.get("namespaces", Key("", key.namespace))
        if namespace is None:
            raise answers.not_found(NAMESPACES, key.namespace)
        if is_deleting(namespace):
            raise answers.terminating(ask.resource, key.name, key.namespace)

    def _name(self, obj: Obj) -> None:
        meta = obj["metadata"]
        if meta.get("name") or not meta.get("generateName"):
            return
        self._made += 1
        number, suffix = self._made * 7919, ""
        for _ in range(5):
            number, place = divmod(number, len(_SUFFIX))
            suffix += _SUFFIX[place]
        meta["name"] = meta["generateName"][:58] + suffix

    def _new_uid(self) -> str:
        self._made += 1
        return f"{self._made:08x}-0000-4000-8000-{self._made:012x}"

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _can_go(obj: Obj) -> bool:
    """A namespace has finalizers of its own in its spec, and a pod may still have time to stop."""
    return not (obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers")) and not obj[
        "metadata"
    ].get("deletionGracePeriodSeconds")


def _finalizers(ask: Ask, old: Obj, options: Obj) -> list[str]:
    finalizers = list(old["metadata"].get("finalizers") or ())
    policy = options.get("propagationPolicy") or ask.query.get("propagationPolicy") or ""
    if policy == "Foreground" and "foregroundDeletion" not in finalizers:
        finalizers.append("foregroundDeletion")
    if policy == "Orphan" and "orphan" not in finalizers:
        finalizers.append("orphan")
    return finalizers


def _grace(ask: Ask, old: Obj, options: Obj) -> int:
    """Only pods that run somewhere get time to stop."""
    if old.get("kind") != "Pod" or not (old.get("spec") or {}).get("nodeName"):
        return 0
    asked = options.get("gracePeriodSeconds", ask.query.get("gracePeriodSeconds"))
    if asked is None:
        asked = (old.get("spec") or {}).get("terminationGracePeriodSeconds", 30)
    return int(asked)
