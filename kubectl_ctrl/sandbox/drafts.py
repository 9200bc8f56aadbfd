"""Computes the result of a write: the stored object and the request make a new object, and nothing is stored yet."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from uuid import UUID

from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of, version_of
from kubectl_ctrl.model.resources import CRDS, NAMESPACES
from kubectl_ctrl.sandbox import admission, answers, intake, names, options, rules, scales
from kubectl_ctrl.sandbox.answers import Problem
from kubectl_ctrl.sandbox.crds import definitions
from kubectl_ctrl.sandbox.fields import managed, patches
from kubectl_ctrl.sandbox.kinds import builtin
from kubectl_ctrl.sandbox.requests import SCALE, ParsedRequest
from kubectl_ctrl.sandbox.storage import Storage
from kubectl_ctrl.value import Value, field, replace

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # the letters of generated names
_NAME_TRIES = 8
_LONGEST_GRACE = 2**63 // 10**9  # seconds; Go counts nanoseconds
_TYPE = ("apiVersion", "kind")
_POLICY_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
_ORPHANING = ("replicationcontrollers", "jobs.batch")  # a deletion without a policy keeps their dependents
_IMMORTAL = ("default", "kube-public", "kube-system")


class Draft(Value, kw_only=True):
    """A computed write, valid as long as the stored object is still `old`."""

    key: Key
    old: Obj | None
    new: Obj | None  # None: the object is removed
    code: int = 200
    warnings: list[str] = field(default_factory=list)


class Drafter:
    """Computes drafts; the storage is only read."""

    def __init__(self, storage: Storage, clock: Clock, random: Random, *, full: bool = False) -> None:
        self._storage = storage
        self._clock = clock
        self._random = random
        self._full = full  # the admission plugins and allocators of a whole cluster act
        self._lookups = admission.Lookups(self._one, self._all, self._suffix)
        self.checks: list[Callable[[ParsedRequest, Obj, Obj | None], None]] = []  # may refuse a new or changed object

    def draft(self, ask: ParsedRequest) -> Draft:
        """Raises the refusal of a request that the current state does not allow."""
        match ask.verb:
            case "create":
                return self._create(ask)
            case "update":
                return self._update(ask)
            case "patch":
                return self._patch(ask)
            case "delete" if not ask.subresource:
                return self._delete(ask)
        raise answers.not_allowed()

    def mutated(self, ask: ParsedRequest, draft: Draft, new: Obj) -> Draft:
        """The draft with the object that admission made of it, under the same rules as a client's object."""
        entries = new["metadata"].get("managedFields")
        new, warnings = intake.shaped(replace(ask, query={**ask.query, "fieldValidation": "Ignore"}), new)
        if draft.old is None:
            before = (draft.new or new)["metadata"]
            new = rules.newborn(ask.kind, new, uid=before["uid"], now=before["creationTimestamp"])
        else:
            new = rules.successor(ask.kind, draft.old, new, ask.subresource)
        return replace(draft, new=_with_entries(new, entries), warnings=[*draft.warnings, *warnings])

    def checked(self, ask: ParsedRequest, draft: Draft) -> Draft:
        """The draft with the warnings of the checks; raises the 422 of an object that fails one."""
        new = draft.new
        if new is None or ask.verb == "delete":
            return draft
        if ask.subresource not in ("ephemeralcontainers", "resize"):  # they change what other updates of a pod may not
            intake.check(ask.kind, new, draft.old)
        if draft.old is None:
            self._check_free(ask, draft.key, new)
        advice = names.finalizer_warnings(new, draft.old) if ask.kind.custom else []
        if ask.resource == CRDS and not ask.subresource:
            advice = definitions.warnings(new, draft.old)
        return replace(draft, warnings=[*draft.warnings, *advice]) if advice else draft

    def _create(self, ask: ParsedRequest) -> Draft:
        ask, obj = ask.opened()
        if ask.resource.namespaced and not ask.namespace:
            raise answers.not_allowed()
        rules.check_place(ask, obj)
        self._name(ask, obj)
        names.check_name(ask.kind, obj)
        return self._created(ask, obj)

    def _update(self, ask: ParsedRequest) -> Draft:
        ask, obj = ask.opened()
        old = self._shown(ask)
        if ask.subresource == "scale":
            return self._scale(ask, self._there(ask, old), obj)
        rules.check_place(ask, obj)
        if old is None:
            return self._create_by_update(ask, obj)
        return self._replace(ask, old, obj)

    def _patch(self, ask: ParsedRequest) -> Draft:
        media = patches.media_type(ask.headers.get("content-type", ""), ask.kind)
        if media == patches.APPLY and ask.subresource == "scale":
            raise answers.not_allowed()
        old = self._shown(ask)
        if media == patches.APPLY:
            return self._apply(ask, old)
        old = self._there(ask, old)
        ask, body = ask.opened()
        if ask.subresource == "scale":
            scale = patches.patched(ask.kind, scales.scale_of(ask.kind, old), body, media)
            return self._scale(ask, old, ask.typed(scale, SCALE, []))
        asked = intake.converted(ask.kind, old)  # the patch is for the version in its path
        new = patches.patched(ask.kind, asked, body, media)
        new = {**new, "metadata": dict(new["metadata"])}
        rules.check_named(ask, new)
        rules.check_place(ask, new)
        return self._replace(ask, old, new)

    def _shown(self, ask: ParsedRequest) -> Obj | None:
        """The stored object, in the form of a view if the request is for one."""
        old = self._storage.get(ask.kind.table, ask.key)
        return old if old is None or ask.kind.view is None else ask.kind.shown(old)

    def _there(self, ask: ParsedRequest, old: Obj | None) -> Obj:
        if old is None:
            raise answers.not_found(ask.resource, ask.name)
        return old

    # -- creating

    def _created(self, ask: ParsedRequest, obj: Obj) -> Draft:
        new, warnings = self._newborn(ask, obj)
        new = managed.updated(ask.kind, None, new, self._change(ask))
        return Draft(key=key_of(obj), old=None, new=builtin.completed(new), code=201, warnings=warnings)

    def _newborn(self, ask: ParsedRequest, obj: Obj) -> tuple[Obj, list[str]]:
        new, warnings = intake.shaped(ask, obj)
        self._check_namespace(ask, key_of(obj))
        self._check(ask, new, None)
        new = admission.admitted(new, self._lookups, full=self._full)
        new = self._with_status(ask, None, rules.newborn(ask.kind, new, uid=self.new_uid(), now=self._now()))
        return new, warnings

    def _with_status(self, ask: ParsedRequest, old: Obj | None, new: Obj) -> Obj:
        """A CRD is served as soon as it exists: its controllers need no time here."""
        if ask.resource != CRDS or ask.subresource:
            return new
        others = self._storage.rows(ask.kind.table).values()
        return {**new, "status": definitions.status(new, old, others, self._now())}

    def _create_by_update(self, ask: ParsedRequest, obj: Obj) -> Draft:
        if ask.subresource or not ask.kind.create_on_update:
            raise answers.not_found(ask.resource, ask.name)
        if uid_of(obj):
            raise answers.uid_conflict(ask.resource, ask.key, uid_of(obj), "")
        obj["metadata"].pop("resourceVersion", None)
        return self._created(ask, obj)

    # -- changing

    def _replace(self, ask: ParsedRequest, old: Obj, new: Obj) -> Draft:
        if new["metadata"].get("managedFields") == [] and not ask.kind.custom:
            # Go's types distinguish an empty list from a missing one: it removes all entries, as one empty entry does.
            new = {**new, "metadata": {**new["metadata"], "managedFields": [{}]}}
        new, warnings = self._successor(ask, old, new)
        new = managed.updated(ask.kind, old, new, self._change(ask))
        return Draft(key=ask.key, old=old, new=new, warnings=warnings)

    def _successor(self, ask: ParsedRequest, old: Obj, new: Obj, *, nulls: bool = False) -> tuple[Obj, list[str]]:
        rules.check_versions(ask.kind, ask, old, new)
        new, warnings = intake.shaped(ask, new, nulls=nulls)
        self._check(ask, new, old)
        if self._full and new["kind"] == "Service":
            new = admission.kept(new, old)
        given = new["metadata"].get("managedFields")
        new = self._with_status(ask, old, rules.successor(ask.kind, old, new, ask.subresource))
        return _with_entries(new, given), warnings

    def _check(self, ask: ParsedRequest, new: Obj, old: Obj | None) -> None:
        for check in self.checks:
            check(ask, new, old)

    def _scale(self, ask: ParsedRequest, old: Obj, scale: Obj) -> Draft:
        new = scales.scaled(ask.kind, old, scale)
        return self._replace(replace(ask, verb="patch"), old, new)

    def _apply(self, ask: ParsedRequest, old: Obj | None) -> Draft:
        ask, config = ask.opened()
        config = intake.without_nulls(config)
        self._check_apply(ask, config)
        intake.check_known(ask.kind, config)
        if old is None and not ask.subresource:
            rules.check_named(ask, config)
        rules.check_place(ask, config)
        force = ask.flag("force")
        if old is not None:
            result = managed.applied(ask.kind, old, config, self._change(ask), force=force)
            new, warnings = self._successor(ask, old, result, nulls=True)
            return Draft(key=ask.key, old=old, new=new, warnings=warnings)
        if ask.subresource:
            raise answers.not_found(ask.resource, ask.name)
        if uid := uid_of(config):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise answers.conflict(ask.resource, ask.name, why)
        config["metadata"].pop("resourceVersion", None)
        names.check_name(ask.kind, config)
        new, warnings = self._newborn(ask, managed.applied(ask.kind, None, config, self._change(ask), force=force))
        return Draft(key=ask.key, old=None, new=builtin.completed(new), code=201, warnings=warnings)

    def _check_apply(self, ask: ParsedRequest, config: Obj) -> None:
        if not ask.query.get("fieldManager"):
            message = "Required value: is required for apply patch"
            problem = Problem(field="fieldManager", reason="FieldValueRequired", message=message)
            raise answers.bad_query("PatchOptions", problem)
        api_version, kind = (value if isinstance(value := config.get(name), str) else "" for name in _TYPE)
        if not api_version or not kind:
            raise answers.bad_request(f"invalid object type: {api_version or '/'}, Kind={kind}")
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

    def _delete(self, ask: ParsedRequest) -> Draft:
        old = self._there(ask, self._shown(ask))
        ask, given = ask.opened()
        self._check_preconditions(ask, old, given.get("preconditions") or {})
        if self._full and ask.resource == NAMESPACES and ask.name in _IMMORTAL:
            raise answers.forbidden(NAMESPACES, ask.name, "this namespace may not be deleted")
        finalizers = _finalizers(ask, old, given)
        grace = _grace(ask, old, given)
        if not finalizers and not grace and not (old.get("spec") or {}).get("finalizers"):
            return Draft(key=ask.key, old=old, new=None)
        if is_deleting(old):
            if old["kind"] == "Pod" or not finalizers:
                return Draft(key=ask.key, old=old, new=old)
            return Draft(key=ask.key, old=old, new={**old, "metadata": {**old["metadata"], "finalizers": finalizers}})
        now = rfc3339(self._clock.now() + grace)
        new = rules.doomed(ask.kind, old, now=now, grace=grace, finalizers=finalizers)
        return Draft(key=ask.key, old=old, new=new)

    def _check_preconditions(self, ask: ParsedRequest, old: Obj, wanted: Obj) -> None:
        uid, version = wanted.get("uid"), wanted.get("resourceVersion")
        if uid and uid != uid_of(old):
            raise answers.uid_mismatch(ask.resource, ask.name, uid, uid_of(old))
        if version and version != version_of(old):
            raise answers.version_mismatch(ask.resource, ask.name, version, version_of(old))

    # -- names and times

    def _check_namespace(self, ask: ParsedRequest, key: Key) -> None:
        if not ask.resource.namespaced:
            return
        namespace = self._storage.get(NAMESPACES.full_name, Key("", key.namespace))
        if namespace is None:
            raise answers.not_found(NAMESPACES, key.namespace)
        if is_deleting(namespace):
            raise answers.terminating(ask.resource, key.name, key.namespace)

    def _check_free(self, ask: ParsedRequest, key: Key, new: Obj) -> None:
        if (old := self._storage.get(ask.kind.table, key)) is None:
            return
        if new["metadata"].get("generateName"):
            raise answers.name_collision(ask.resource, key.name)
        raise answers.already_exists(ask.resource, key.name, deleting=is_deleting(old))

    def _name(self, ask: ParsedRequest, obj: Obj) -> None:
        """Generate a name; of eight taken ones the last is used, which is then refused."""
        meta = obj["metadata"]
        if meta.get("name") or not meta.get("generateName"):
            return
        for _ in range(_NAME_TRIES):
            meta["name"] = meta["generateName"][:58] + self._suffix()
            if self._storage.get(ask.kind.table, key_of(obj)) is None:
                break

    def _suffix(self) -> str:
        return "".join(self._random.choices(_SUFFIX, k=5))

    def _one(self, table: str, namespace: str, name: str) -> Obj | None:
        return self._storage.get(table, Key(namespace, name))

    def _all(self, table: str) -> list[Obj]:
        return list(self._storage.rows(table).values())

    def new_uid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def _now(self) -> str:
        return rfc3339(self._clock.now())

    def __repr__(self) -> str:
        return f"Drafter({self._storage!r})"


def _with_entries(obj: Obj, entries: list[Obj] | None) -> Obj:
    return obj if entries is None else {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def _finalizers(ask: ParsedRequest, old: Obj, given: Obj) -> list[str]:
    """The finalizers during the deletion; of those of the garbage collector only the one that the policy needs."""
    before = list(old["metadata"].get("finalizers") or ())
    finalizers = [one for one in before if one not in _POLICY_FINALIZERS.values()]
    if ask.resource == CRDS and rules.CRD_FINALIZER not in finalizers:
        finalizers.append(rules.CRD_FINALIZER)
    if policy := options.propagation(ask, given):
        return [*finalizers, *([_POLICY_FINALIZERS[policy]] if policy in _POLICY_FINALIZERS else [])]
    if len(finalizers) < len(before) or ask.kind.table not in _ORPHANING:
        return [*finalizers, *(one for one in before if one in _POLICY_FINALIZERS.values())]
    return [*finalizers, _POLICY_FINALIZERS["Orphan"]]


def _grace(ask: ParsedRequest, old: Obj, given: Obj) -> int:
    """Only scheduled pods have a grace period."""
    if old.get("kind") != "Pod" or not (old.get("spec") or {}).get("nodeName"):
        return 0
    asked = given.get("gracePeriodSeconds")
    if asked is None and ask.query.get("gracePeriodSeconds"):
        asked = options.number(ask, "gracePeriodSeconds")
    if asked is None:
        asked = (old.get("spec") or {}).get("terminationGracePeriodSeconds", 30)
    return min(int(asked), _LONGEST_GRACE) if int(asked) >= 0 else 1
