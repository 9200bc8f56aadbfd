"""The writing verbs: each commits or rejects a request, and returns the response."""

from __future__ import annotations

from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of, version_of
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import CRDS, NAMESPACES, Resource
from kubectl_ctrl.testing import answers, managed, names, options, patching, rules, scales, shaping
from kubectl_ctrl.testing.answers import Problem
from kubectl_ctrl.testing.asks import ParsedRequest
from kubectl_ctrl.testing.storage import Storage
from kubectl_ctrl.value import Value, field, replace

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # the letters of generated names


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


class StorageWriter:
    """The writing verbs. `log` has every accepted write."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._made = 0
        self.log: list[Write] = []

    def create(self, ask: ParsedRequest) -> WriteAnswer:
        obj = ask.obj()
        if ask.resource.namespaced and not ask.namespace:
            raise answers.not_allowed()
        rules.check_place(ask, obj)
        self._name(obj)
        names.check_name(ask.kind, obj)
        return self._create(ask, obj)

    def update(self, ask: ParsedRequest) -> WriteAnswer:
        obj = ask.obj()
        old = self._storage.get(ask.kind.table, ask.key)
        if ask.subresource == "scale":
            return self._scale(ask, self._there(ask, old), obj)
        rules.check_place(ask, obj)
        if old is None:
            return self._create_by_update(ask, obj)
        return self._replace(ask, old, obj)

    def patch(self, ask: ParsedRequest) -> WriteAnswer:
        media = patching.media_type(ask.headers.get("content-type", ""), ask.kind)
        if media == patching.APPLY and ask.subresource == "scale":
            raise answers.not_allowed()
        old = self._storage.get(ask.kind.table, ask.key)
        if media == patching.APPLY:
            return self._apply(ask, old)
        old = self._there(ask, old)
        if ask.subresource == "scale":
            scale = patching.patched(ask.kind, scales.scale_of(ask.kind, old), ask.body(), media)
            return self._scale(ask, old, scale)
        asked = {**old, "apiVersion": ask.resource.api_version}  # the patch is for the version in its path
        new = patching.patched(ask.kind, asked, ask.body(), media)
        new = {**new, "metadata": dict(new["metadata"])}
        rules.check_place(ask, new)
        return self._replace(ask, old, new)

    def _there(self, ask: ParsedRequest, old: Obj | None) -> Obj:
        if old is None:
            raise answers.not_found(ask.resource, ask.name)
        return old

    # -- creating

    def _create(self, ask: ParsedRequest, obj: Obj) -> WriteAnswer:
        key = key_of(obj)
        self._check_namespace(ask, key)
        if (old := self._storage.get(ask.kind.table, key)) is not None:
            raise answers.already_exists(ask.resource, key.name, deleting=is_deleting(old))
        new, warnings = self._newborn(ask, obj)
        new = managed.updated(ask.kind, None, new, self._change(ask))
        return WriteAnswer(body=self._commit(ask, None, new), code=201, warnings=warnings)

    def _newborn(self, ask: ParsedRequest, obj: Obj) -> tuple[Obj, list[str]]:
        new, warnings = shaping.shaped(ask.kind, obj, ask.query.get("fieldValidation", "Warn"))
        new = rules.newborn(ask.kind, new, uid=self._new_uid(), now=self._now())
        shaping.check(ask.kind, new, None)
        return new, [*warnings, *self._advice(ask, new, None)]

    def _create_by_update(self, ask: ParsedRequest, obj: Obj) -> WriteAnswer:
        if ask.subresource or not ask.kind.create_on_update:
            raise answers.not_found(ask.resource, ask.name)
        if uid_of(obj):
            raise answers.uid_conflict(ask.resource, ask.key, uid_of(obj), "")
        obj["metadata"].pop("resourceVersion", None)
        return self._create(ask, obj)

    # -- changing

    def _replace(self, ask: ParsedRequest, old: Obj, new: Obj) -> WriteAnswer:
        if new["metadata"].get("managedFields") == [] and not ask.kind.custom:
            # Go's types distinguish an empty list from a missing one: it removes all entries, as one empty entry does.
            new = {**new, "metadata": {**new["metadata"], "managedFields": [{}]}}
        new, warnings = self._successor(ask, old, new)
        new = managed.updated(ask.kind, old, new, self._change(ask))
        return WriteAnswer(body=self._commit(ask, old, new), warnings=warnings)

    def _successor(self, ask: ParsedRequest, old: Obj, new: Obj, *, nulls: bool = False) -> tuple[Obj, list[str]]:
        rules.check_versions(ask.kind, ask, old, new)
        new, warnings = shaping.shaped(ask.kind, new, ask.query.get("fieldValidation", "Warn"), nulls=nulls)
        given = new["metadata"].get("managedFields")
        new = rules.successor(ask.kind, old, new, ask.subresource)
        shaping.check(ask.kind, new, old)
        if given is not None:
            new = {**new, "metadata": {**new["metadata"], "managedFields": given}}
        return new, [*warnings, *self._advice(ask, new, old)]

    def _advice(self, ask: ParsedRequest, new: Obj, old: Obj | None) -> list[str]:
        return names.finalizer_warnings(new, old) if ask.kind.custom else []

    def _scale(self, ask: ParsedRequest, old: Obj, scale: Obj) -> WriteAnswer:
        new = scales.scaled(ask.kind, old, scale)
        done = self._replace(replace(ask, verb="patch"), old, new)
        return replace(done, body=scales.scale_of(ask.kind, done.body))

    def _apply(self, ask: ParsedRequest, old: Obj | None) -> WriteAnswer:
        config = shaping.without_nulls(ask.obj())
        self._check_apply(ask, config)
        shaping.check_known(ask.kind, config)
        if old is None and not ask.subresource:
            rules.check_named(ask, config)
        rules.check_place(ask, config)
        force = ask.flag("force")
        if old is not None:
            result = managed.applied(ask.kind, old, config, self._change(ask), force=force)
            new, warnings = self._successor(ask, old, result, nulls=True)
            return WriteAnswer(body=self._commit(ask, old, new), warnings=warnings)
        if ask.subresource:
            raise answers.not_found(ask.resource, ask.name)
        if uid := uid_of(config):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise answers.conflict(ask.resource, ask.name, why)
        config["metadata"].pop("resourceVersion", None)
        names.check_name(ask.kind, config)
        self._check_namespace(ask, key_of(config))
        new, warnings = self._newborn(ask, managed.applied(ask.kind, None, config, self._change(ask), force=force))
        return WriteAnswer(body=self._commit(ask, None, new), code=201, warnings=warnings)

    def _check_apply(self, ask: ParsedRequest, config: Obj) -> None:
        if not ask.query.get("fieldManager"):
            message = "Required value: is required for apply patch"
            problem = Problem(field="fieldManager", reason="FieldValueRequired", message=message)
            raise answers.bad_query("PatchOptions", problem)
        if not config.get("apiVersion") or not config.get("kind"):
            raise answers.bad_request(
                f"invalid object type: {config.get('apiVersion', '/')}, Kind={config.get('kind', '')}"
            )
        if (config["apiVersion"], config["kind"]) != (ask.resource.api_version, ask.resource.kind):
            group, _, version = config["apiVersion"].rpartition("/")
            raise answers.bad_request(f"invalid object type: {group}/{version}, Kind={config['kind']}")
        if "managedFields" in config["metadata"]:
            raise answers.bad_request("metadata.managedFields must be nil")

    def _change(self, ask: ParsedRequest) -> managed.WriteOrigin:
        # An entry written through /scale has no time.
        now = "" if ask.subresource == "scale" else self._now()
        api_version = ask.resource.api_version
        return managed.WriteOrigin(manager=ask.manager, api_version=api_version, subresource=ask.subresource, now=now)

    # -- deleting

    def delete(self, ask: ParsedRequest) -> WriteAnswer:
        old = self._there(ask, self._storage.get(ask.kind.table, ask.key))
        given = ask.body() or {}
        if given.get("dryRun"):
            ask = replace(ask, query={**ask.query, "dryRun": "All"})
        self._check_preconditions(ask, old, given.get("preconditions") or {})
        finalizers = _finalizers(ask, old, given)
        grace = _grace(ask, old, given)
        if not finalizers and not grace and not (old.get("spec") or {}).get("finalizers"):
            return WriteAnswer(body=self._remove(ask, old))
        if is_deleting(old):
            return WriteAnswer(body=old)
        now = rfc3339(self._clock.now() + grace)
        new = rules.doomed(ask.kind, old, now=now, grace=grace, finalizers=finalizers)
        return WriteAnswer(body=self._commit(ask, old, new))

    def _check_preconditions(self, ask: ParsedRequest, old: Obj, wanted: Obj) -> None:
        uid, version = wanted.get("uid"), wanted.get("resourceVersion")
        if uid and uid != uid_of(old):
            raise answers.uid_mismatch(ask.resource, ask.name, uid, uid_of(old))
        if version and version != version_of(old):
            raise answers.version_mismatch(ask.resource, ask.name, version, version_of(old))

    def _remove(self, ask: ParsedRequest, old: Obj) -> Obj:
        if not ask.dry_run:
            self._note(ask, old, version_of(self._storage.remove(ask.kind.table, key_of(old))))
        group, plural = ask.resource.group, ask.resource.plural
        details = {"name": old["metadata"]["name"], "group": group, "kind": plural, "uid": uid_of(old)}
        kept = {key: value for key, value in details.items() if value}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": kept}

    # -- storing

    def _commit(self, ask: ParsedRequest, old: Obj | None, new: Obj) -> Obj:
        """Store it, unless that changes nothing; an object without its last finalizer is deleted instead."""
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

    def _check_namespace(self, ask: ParsedRequest, key: Key) -> None:
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


def _finalizers(ask: ParsedRequest, old: Obj, given: Obj) -> list[str]:
    finalizers = list(old["metadata"].get("finalizers") or ())
    if ask.resource == CRDS and rules.CRD_FINALIZER not in finalizers:
        finalizers.append(rules.CRD_FINALIZER)
    policy = options.propagation(ask, given)
    if policy == "Foreground" and "foregroundDeletion" not in finalizers:
        finalizers.append("foregroundDeletion")
    if policy == "Orphan" and "orphan" not in finalizers:
        finalizers.append("orphan")
    return finalizers


def _grace(ask: ParsedRequest, old: Obj, given: Obj) -> int:
    """Only scheduled pods have a grace period."""
    if old.get("kind") != "Pod" or not (old.get("spec") or {}).get("nodeName"):
        return 0
    asked = given.get("gracePeriodSeconds", ask.query.get("gracePeriodSeconds"))
    if asked is None:
        asked = (old.get("spec") or {}).get("terminationGracePeriodSeconds", 30)
    return int(asked)
