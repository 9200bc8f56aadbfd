"""The rules for stored objects, and the fields that the server writes: pure functions of old and new object."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj, is_deleting, key_of, uid_of, version_of
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS, NAMESPACES, Resource
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.answers import Problem
from kubectl_ctrl.sandbox.kinds import builtin, schemas, structs
from kubectl_ctrl.sandbox.kinds.catalog import USERS_METADATA, Generation, ServedKind
from kubectl_ctrl.sandbox.requests import ParsedRequest

CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"

# Written by the server alone; it silently drops a client's value.
_SERVERS_OWN = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")


_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion")


def clone(value: Any) -> Any:
    """A deep copy of a JSON value."""
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clone(item) for item in value]
    return value


def check_place(ask: ParsedRequest, obj: Obj) -> None:
    """Fill in the name and namespace of the path, and refuse a body that contradicts it."""
    _check_texts(ask.kind, obj)
    _check_type(ask.kind, obj)
    meta = obj["metadata"]
    if ask.resource.namespaced:
        if (meta.get("namespace") or ask.namespace) != ask.namespace:
            raise answers.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        meta["namespace"] = ask.namespace
    else:
        meta.pop("namespace", None)
    if ask.verb == "update":
        check_named(ask, obj)
    if ask.name and (meta.get("name") or ask.name) != ask.name:
        message = f"the name of the object ({meta['name']}) does not match the name on the URL ({ask.name})"
        raise answers.bad_request(message)
    if ask.name:
        meta["name"] = ask.name


def _check_texts(kind: ServedKind, obj: Obj) -> None:
    """Raises the 400 of an object whose type or name is not text; other fields are read later."""
    meta = obj["metadata"]
    if all(isinstance(value, str | None) for value in (obj.get("apiVersion"), obj.get("kind"), *map(meta.get, _TEXTS))):
        return
    try:
        if kind.custom:
            structs.read(meta, schemas.metadata(), "metadata")
        else:
            structs.read(obj, kind.schema)
    except structs.WrongType as error:
        raise answers.undecodable(kind.resource, str(error)) from error


def check_named(ask: ParsedRequest, obj: Obj) -> None:
    """A whole object must contain its name, although the path does too."""
    if not obj["metadata"].get("name"):
        why = "name must be provided"
        raise answers.bad_request(f"the name of the object ({ask.name} based on URL) was undeterminable: {why}")


def _check_type(kind: ServedKind, obj: Obj) -> None:
    """A custom object must declare its apiVersion and kind; a built-in one need not."""
    resource = kind.resource
    expected = {"apiVersion": resource.api_version, "kind": resource.kind}
    if not kind.custom:
        for name, right in expected.items():
            given = obj.get(name) or right
            if given != right:
                raise _unregistered(kind, name, given)
            obj[name] = right
        return
    for name in ("kind", "apiVersion"):
        if not isinstance(obj.get(name), str) or not obj[name]:
            start = answers.encode(obj).decode()
            why = f"Object '{name.capitalize()}' is missing in '{start}' ({start[:30]} ...)"
            raise answers.bad_request(f"the object provided is unrecognized (must be of type {resource.kind}): {why}")
    if obj["apiVersion"] != resource.api_version:
        told = f"({obj['apiVersion']}) does not match the expected API version ({resource.api_version})"
        raise answers.bad_request(f"the API version in the data {told}")
    if obj["kind"] != resource.kind:
        problem = Problem(
            field="kind", reason="FieldValueInvalid", message=f'Invalid value: "{obj["kind"]}": must be {resource.kind}'
        )
        wrong = Resource(resource.group, resource.version, resource.plural, obj["kind"], resource.namespaced)
        raise answers.invalid(wrong, str(obj["metadata"].get("name") or ""), [problem])


def _unregistered(kind: ServedKind, name: str, given: str) -> answers.Refusal:
    resource = kind.resource
    if name == "apiVersion":
        why = f'no kind "{resource.kind}" is registered for version "{given}" in scheme "pkg/runtime/scheme.go:111"'
        return answers.undecodable(resource, why, version=given.rpartition("/")[2])
    return answers.bad_request(
        f'{given} in version "{resource.version}" cannot be handled as a {resource.kind}: '
        f"converting ({resource.version}.{given}) to (core.{resource.kind}): unknown conversion"
    )


def newborn(kind: ServedKind, obj: Obj, *, uid: str, now: str) -> Obj:
    """The created object, before defaults and managed fields."""
    meta = obj["metadata"]
    if meta.get("resourceVersion"):
        message = "resourceVersion should not be set on objects to be created"
        raise answers.unparsed(message)
    for name in (*_SERVERS_OWN, "resourceVersion"):
        if name != "generation" or kind.generation is not Generation.NEVER:  # without a generation, nothing compares it
            meta.pop(name, None)
    meta["uid"] = uid
    meta["creationTimestamp"] = now
    if kind.generation is not Generation.NEVER:
        meta["generation"] = 1
    if kind.has_status and kind.resource.kind != "Node":  # a kubelet creates its Node with a status
        obj.pop("status", None)
    if not kind.custom:
        obj = builtin.prepared(obj)
        meta = obj["metadata"]
    if kind.resource.plural == "namespaces":
        obj["spec"] = {"finalizers": ["kubernetes"]}
        obj["status"] = {"phase": "Active"}
        meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}
    return obj


def check_versions(kind: ServedKind, ask: ParsedRequest, old: Obj, new: Obj) -> None:
    """Optimistic concurrency: the UID and version in the body must be the stored ones."""
    wanted, name = uid_of(new), str(old["metadata"]["name"])
    if wanted and wanted != uid_of(old):
        if ask.verb == "update":
            raise answers.uid_conflict(kind.resource, key_of(old), wanted, uid_of(old))
        problem = Problem(
            field="metadata.uid", reason="FieldValueInvalid", message=f'Invalid value: "{wanted}": field is immutable'
        )
        raise answers.invalid(kind.resource, name, [problem, problem])  # metadata is checked twice
    version = version_of(new)
    if version and not version.isdecimal():
        raise answers.unparsed(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if version and version != version_of(old):
        raise answers.conflict(kind.resource, name)
    if not version and ask.verb == "update" and not kind.unconditional:
        raise answers.no_version(kind.resource, name)


# The only part that a subresource writes.
_PARTS = {
    "status": ("status",),
    "finalize": ("spec",),
    "approval": ("status", "conditions"),
    "ephemeralcontainers": ("spec", "ephemeralContainers"),
    "resize": ("spec", "containers"),
}


def successor(kind: ServedKind, old: Obj, new: Obj, subresource: str) -> Obj:
    """`new` with all fields from `old` that this endpoint cannot change."""
    if subresource in _PARTS:
        changed = _only(old, new, *_PARTS[subresource])
        meta = _metadata(old, new, kind.kept_metadata(subresource))
        if _grown(kind, old, changed):
            meta["generation"] = int(old["metadata"].get("generation") or 0) + 1
        changed["metadata"] = meta
        _check_finalizers(kind, old, changed)
        return changed
    new = {**new, "metadata": dict(new["metadata"])}
    if kind.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    if kind.resource == NAMESPACES:
        new["spec"] = old["spec"]  # its finalizers change through /finalize
    meta, before = new["metadata"], old["metadata"]
    for name in (*_SERVERS_OWN, "uid", "resourceVersion"):
        meta.pop(name, None)
        if name in before:
            meta[name] = before[name]
    _check_finalizers(kind, old, new)
    if not kind.custom:
        new = builtin.changed(new, old)
        meta = new["metadata"]
    if _grown(kind, old, new):
        meta["generation"] = int(before.get("generation") or 0) + 1
    return new


def _only(old: Obj, new: Obj, field: str, *inner: str) -> Obj:
    """`old` with one field of `new`, or with one that is further inside."""
    result = {key: value for key, value in old.items() if key != field}
    if inner:
        return {**result, field: _only(old.get(field) or {}, new.get(field) or {}, *inner)}
    return {**result, field: new[field]} if field in new else result


def _metadata(old: Obj, new: Obj, kept: tuple[str, ...]) -> Obj:
    """The metadata of `old` with all fields of `new` that clients write, without the kept ones."""
    taken = {name: new["metadata"].get(name) for name in USERS_METADATA if name not in kept}
    return {name: value for name, value in {**old["metadata"], **taken}.items() if name not in taken or value}


def _check_finalizers(kind: ServedKind, old: Obj, new: Obj) -> None:
    before = old["metadata"].get("finalizers") or []
    added = sorted(frozenset(new["metadata"].get("finalizers") or ()) - frozenset(before))
    if is_deleting(old) and added:
        message = "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
        problem = Problem(
            field="metadata.finalizers", reason="FieldValueForbidden", message=f"{message}[]string{{{_quoted(added)}}}"
        )
        raise answers.invalid(kind.resource, str(old["metadata"]["name"]), [problem, problem])


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _grown(kind: ServedKind, old: Obj, new: Obj) -> bool:
    match kind.generation:
        case Generation.SPEC | Generation.TEMPLATE | Generation.WEBHOOKS:
            annotations = [obj["metadata"].get("annotations") for obj in (old, new)]
            annotated = kind.resource == DEPLOYMENTS and not same(*annotations)
            return annotated or not same(old.get(kind.generation), new.get(kind.generation))
        case Generation.ALL:
            return not same(_without_metadata(kind, old), _without_metadata(kind, new))
    return False


def _without_metadata(kind: ServedKind, obj: Obj) -> Obj:
    apart = {"metadata", "apiVersion", "kind", *(["status"] if kind.has_status else [])}
    return {key: value for key, value in obj.items() if key not in apart}


def doomed(kind: ServedKind, old: Obj, *, now: str, grace: int, finalizers: list[str]) -> Obj:
    """The object after a deletion request, while a finalizer or grace period keeps it."""
    meta = {**old["metadata"], "deletionTimestamp": now}
    if finalizers:
        meta["finalizers"] = finalizers
    if old.get("kind") == "Namespace":
        old = {**old, "status": {"phase": "Terminating"}}
    if kind.resource not in (CRDS, NAMESPACES):  # deleted differently
        meta["deletionGracePeriodSeconds"] = grace
        if kind.generation is not Generation.NEVER:
            meta["generation"] = int(meta.get("generation") or 0) + 1
    return {**old, "metadata": meta}


def bound(pod: Obj, node: str, now: str) -> Obj:
    """The pod after a binding to a node."""
    status = pod.get("status") or {}
    others = [one for one in status.get("conditions") or () if one["type"] != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
    return {
        **pod,
        "metadata": dict(pod["metadata"]),
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "conditions": [*others, scheduled]},
    }
