"""The orders for all verbs: path, query, media type, and whether they may be repeated."""

from __future__ import annotations

from kubectl_ctrl.client.options import DeleteOptions, ListQuery, PatchKind, WatchQuery, WriteOptions
from kubectl_ctrl.client.order import JSON, Body, Order, WhenLost, collection_path, object_path
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.value import replace as changed

Query = tuple[tuple[str, str], ...]

# A list takes longest: a page of large objects, read from etcd while the server's cache is empty.
PAGE_TIMEOUT = 60.0

_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"
_RAW_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def get(ref: ObjectRef) -> Order:
    return _on_object("get", "GET", ref)


def list_page(resource: Resource, query: ListQuery, token: str = "", *, resend: bool = True) -> Order:
    """The first page, or the page of a continue token."""
    return Order(
        verb="list",
        method="GET",
        path=collection_path(resource, query.namespace),
        # A continue token contains the version: the server rejects a resourceVersion beside it.
        query=_selected(query) + ((("limit", str(query.limit)), ("continue", token)) if token else _first_page(query)),
        resource=resource,
        namespace=query.namespace,
        accept=_METADATA.format("List") if query.metadata_only else JSON,
        timeout=PAGE_TIMEOUT,
        resend=resend,
    )


def watch(resource: Resource, query: WatchQuery) -> Order:
    params: list[tuple[str, str]] = [("watch", "true")]
    if query.bookmarks:
        params.append(("allowWatchBookmarks", "true"))
    if query.version:
        params.append(("resourceVersion", query.version))
    if query.initial_events:
        params += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
    if query.timeout:
        params.append(("timeoutSeconds", str(max(1, round(query.timeout)))))
    return Order(
        verb="watch",
        method="GET",
        path=collection_path(resource, query.namespace),
        query=_selected(query) + tuple(params),
        resource=resource,
        namespace=query.namespace,
        accept=_METADATA.format("") if query.metadata_only else JSON,
        resend=False,
    )


def create(where: Resource | ObjectRef, obj: Obj, options: WriteOptions) -> Order:
    """A POST of a new object, or to a subresource of an existing one."""
    if isinstance(where, ObjectRef):
        return changed(
            _on_object("create", "POST", where, obj),
            query=_written(options),
            dry_run=options.dry_run,
            when_lost=WhenLost.REPEAT if options.dry_run else WhenLost.UNKNOWN,
        )
    namespace = str(obj["metadata"].get("namespace") or "") if where.namespaced else ""
    ref = where.ref(str(obj["metadata"].get("name") or ""), namespace)
    object_path(ref)  # raises for a name that could not be read afterwards
    return Order(
        verb="create",
        method="POST",
        path=collection_path(where, namespace),
        query=_written(options),
        resource=where,
        namespace=namespace,
        name=ref.name,
        body=_typed(where, obj),
        dry_run=options.dry_run,
        when_lost=WhenLost.REPEAT if options.dry_run else WhenLost.READ,
    )


def replace(ref: ObjectRef, obj: Obj, options: WriteOptions) -> Order:
    version = str(obj["metadata"].get("resourceVersion") or "")
    return changed(
        _on_object("update", "PUT", ref, obj if ref.subresource else _typed(ref.resource, obj)),
        query=_written(options),
        dry_run=options.dry_run,
        old_version=options.old_version or version,
        before=options.before,
        when_lost=_when_lost(options, version),
    )


def patch(ref: ObjectRef, body: Body, kind: PatchKind, options: WriteOptions) -> Order:
    """A patch of any kind; for the record, an apply has its own verb."""
    if kind is PatchKind.APPLY:
        return _apply(ref, body, options)
    version = _version_in(body)
    return changed(
        _on_object("patch", "PATCH", ref, body),
        query=_written(options),
        content_type=kind.value,
        dry_run=options.dry_run,
        old_version=options.old_version or version,
        before=options.before,
        # A merge patch of one object (by UID) for any version is idempotent.
        when_lost=WhenLost.REPEAT if kind is PatchKind.MERGE and _only_uid_in(body) else _when_lost(options, version),
    )


def delete(ref: ObjectRef, options: DeleteOptions) -> Order:
    conditions = {"uid": options.uid, "resourceVersion": options.version}
    body: Obj = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if options.propagation:
        body["propagationPolicy"] = options.propagation
    if options.grace is not None:
        body["gracePeriodSeconds"] = options.grace
    if preconditions := {key: value for key, value in conditions.items() if value}:
        body["preconditions"] = preconditions
    if options.dry_run:
        body["dryRun"] = ["All"]
    return changed(
        _on_object("delete", "DELETE", ref, body),
        # The server uses only the body; the query makes the dry run visible in its audit log.
        query=(("dryRun", "All"),) if options.dry_run else (),
        dry_run=options.dry_run,
        old_version=options.version,
        before=options.before,
        when_lost=WhenLost.REPEAT if options.uid or options.dry_run else WhenLost.UNKNOWN,
    )


def raw(method: str, path: str, query: Query, accept: str, body: Obj | None) -> Order:
    """Any request. The effect of a write is unknown here, so it is never repeated."""
    if not path.startswith("/"):
        raise UsageError(f"The path {path!r} of a raw request must begin with a slash.")
    verb = _RAW_VERBS.get(method)
    if verb is None:
        raise UsageError(f"{method!r} is not a method of the API server; use one of {', '.join(_RAW_VERBS)}.")
    return Order(
        verb=verb,
        method=method,
        path=path,
        query=query,
        name=path,
        body=body,
        accept=accept,
        dry_run=("dryRun", "All") in query,
        when_lost=WhenLost.REPEAT if verb == "get" else WhenLost.UNKNOWN,
    )


def read_back(order: Order) -> Order:
    """The read that shows whether a write was carried out.

    A status is read with its object, because more roles allow that than reading the subresource.
    """
    assert order.resource is not None
    subresource = "" if order.verb == "create" or order.subresource == "status" else order.subresource
    return get(ObjectRef(order.resource, order.name, order.namespace, subresource))


def _apply(ref: ObjectRef, body: Body, options: WriteOptions) -> Order:
    if not isinstance(body, dict):
        raise UsageError(f"An apply of {ref} takes an object, not a list of operations.")
    if not options.manager:
        raise UsageError(f"An apply of {ref} must name its field manager.")
    return changed(
        _on_object("apply", "PATCH", ref, _typed(ref.resource, body) if ref.subresource in {"", "status"} else body),
        query=(*_written(options), ("force", "true" if options.force else "false")),
        content_type=PatchKind.APPLY.value,
        dry_run=options.dry_run,
        old_version=options.old_version or _version_in(body),
        before=options.before,
    )


def _on_object(verb: str, method: str, ref: ObjectRef, body: Body | None = None) -> Order:
    return Order(
        verb=verb,
        method=method,
        path=object_path(ref),
        resource=ref.resource,
        namespace=ref.namespace if ref.resource.namespaced else "",
        name=ref.name,
        subresource=ref.subresource,
        body=body,
    )


def _typed(resource: Resource, obj: Obj) -> Obj:
    """The object with apiVersion and kind, added if missing."""
    if obj.get("kind") and obj.get("apiVersion"):
        return obj
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def _written(options: WriteOptions) -> Query:
    params = (("fieldManager", options.manager), ("dryRun", "All" if options.dry_run else ""))
    return tuple((key, value) for key, value in params if value)


def _when_lost(options: WriteOptions, version: str) -> WhenLost:
    """With a resourceVersion, a repeated write is harmless, and a read shows whether the first one was carried out."""
    if options.dry_run:
        return WhenLost.REPEAT
    return WhenLost.READ if version else WhenLost.UNKNOWN


def _only_uid_in(body: Body) -> bool:
    meta = (body.get("metadata") if isinstance(body, dict) else None) or {}
    return bool(meta.get("uid")) and not meta.get("resourceVersion")


def _version_in(body: Body) -> str:
    """The resourceVersion that a patch requires, "" for any."""
    if isinstance(body, dict):
        return str((body.get("metadata") or {}).get("resourceVersion") or "")
    # `test` requires it, and so does setting it, because the server compares the value with the stored one.
    values = [op.get("value") for op in body if op.get("path") == "/metadata/resourceVersion" and op["op"] != "remove"]
    return str(values[0] or "") if values else ""


def _selected(query: ListQuery | WatchQuery) -> Query:
    params = (("labelSelector", query.labels), ("fieldSelector", query.fields))
    return tuple((key, value) for key, value in params if value)


def _first_page(query: ListQuery) -> Query:
    # With a limit, a resourceVersion means exactly that version, which may be compacted already.
    limit = query.limit if query.version in {"", "0"} else 0
    params = (("limit", str(limit) if limit else ""), ("resourceVersion", query.version))
    return tuple((key, value) for key, value in params if value)
