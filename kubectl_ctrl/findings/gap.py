"""The differences between the desired and the live state, field by field, and the owners of the fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.findings.account import Gap
from kubectl_ctrl.findings.case import Body, Case
from kubectl_ctrl.model.attempt import WriteRequest
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, is_subset
from kubectl_ctrl.model.managed_fields import entries, fields_set
from kubectl_ctrl.model.objects import Key, generation_of
from kubectl_ctrl.model.record import FactSource, RecordedAttempt
from kubectl_ctrl.model.resources import SECRETS, Resource

_MOST = 8
# Fields of a request that identify the object, or that the server sets.
_IGNORED = frozenset(
    {"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.ownerReferences"}
)
_WORKLOADS = ("readyReplicas", "availableReplicas", "updatedReplicas")


def find_gap(case: Case, attempt: RecordedAttempt | None) -> tuple[Gap, ...]:
    """The first few differences between the writes that the attempt requested and the state of the objects."""
    wanted = [one for wish in (attempt.wishes if attempt else ()) for one in _of_wish(case, wish)]
    return tuple((wanted or list(_of_calls(case, attempt)) or list(_of_generation(case)))[:_MOST])


def rollout(case: Case, resource: Resource, key: Key, body: Body) -> Iterator[Gap]:
    """The missing replicas of a workload."""
    obj = body.obj or {}
    status = obj.get("status")
    want = (obj.get("spec") or {}).get("replicas")
    if not isinstance(want, int) or not isinstance(status, dict) or resource == case.resource:
        return
    for name in _WORKLOADS:
        if name == "availableReplicas" or name in status:
            live = status.get(name) or 0
            if live != want:
                path = f"status.{name}"
                yield Gap(
                    resource=resource,
                    key=key,
                    path=path,
                    want=want,
                    live=live,
                    owners=_owners(case, body, (resource, key), path),
                    source=body.source,
                    at=body.at,
                )
                return


def _of_wish(case: Case, wish: WriteRequest) -> Iterator[Gap]:
    if wish.verb not in ("ensure", "create", "status", "patch") or not wish.body:
        return
    try:
        desired = json.loads(wish.body)
    except ValueError:
        return
    if not isinstance(desired, dict):
        return  # a JSON patch
    if wish.verb == "status":
        desired = {"status": desired}
    elif wish.verb == "patch" and ("subresource", "status") in wish.options and "status" not in desired:
        return
    place = (wish.resource, wish.key)
    body = case.bodies.get(place)
    if body is None and wish.how:
        return  # the write succeeded, and no newer state is known
    if body is None or body.obj is None:
        if wish.verb in ("ensure", "create"):
            yield Gap(
                resource=wish.resource,
                key=wish.key,
                path="",
                want="exists",
                live=ABSENT,
                source=body.source if body else FactSource.RECORDED,
                at=body.at if body else None,
            )
        return
    for path, want, live in _missing("", desired, body.obj):
        hidden = wish.resource == SECRETS
        yield Gap(
            resource=wish.resource,
            key=wish.key,
            path=path,
            want=HIDDEN if hidden else want,
            live=live if live is ABSENT or not hidden else HIDDEN,
            owners=_owners(case, body, place, path),
            source=body.source,
            at=body.at,
        )


def _of_calls(case: Case, attempt: RecordedAttempt | None) -> Iterator[Gap]:
    """For recordings without requested writes: a failed create still names the missing object."""
    for made in attempt.calls if attempt else ():
        call = made.call
        if call.verb == "create" and call.error and call.resource is not None and call.name:
            key = Key(call.namespace, call.name)
            body = case.bodies.get((call.resource, key))
            if body is None or body.obj is None:
                yield Gap(resource=call.resource, key=key, path="", want="exists", live=ABSENT)


def _of_generation(case: Case) -> Iterator[Gap]:
    """The status of the object itself describes an older generation."""
    body = case.body
    if body is None or body.obj is None:
        return
    status = body.obj.get("status")
    seen = status.get("observedGeneration") if isinstance(status, dict) else None
    now = generation_of(body.obj)
    if isinstance(seen, int) and now and seen != now:
        path = "status.observedGeneration"
        yield Gap(resource=case.resource, key=case.key, path=path, want=now, live=seen, source=body.source, at=body.at)


def _missing(path: str, desired: Any, live: Any) -> Iterator[tuple[str, Any, Any]]:
    """(path, desired, live) of every field of `desired` with another value in `live`."""
    if path in _IGNORED or path.startswith("metadata.managedFields"):
        return
    field = path.rpartition(".")[2]
    if field == "lastTransitionTime" or is_subset(desired, live if live is not ABSENT else None, field):
        return
    if isinstance(desired, dict) and isinstance(live, dict):
        for key, value in desired.items():
            yield from _missing(f"{path}.{key}" if path else key, value, live.get(key, ABSENT))
    elif isinstance(desired, list) and isinstance(live, list) and (pairs := _paired(desired, live)):
        for name, want, has in pairs:
            yield from _missing(f"{path}[{name}]", want, has)
    else:
        yield path, desired, live


def _paired(desired: list[Any], live: list[Any]) -> list[tuple[str, Any, Any]]:
    """The items of two lists paired by name or type; empty if they have neither."""
    for key in ("name", "type"):
        if all(isinstance(item, dict) and isinstance(item.get(key), str) for item in (*desired, *live)):
            known = {item[key]: item for item in live}
            return [(f"{key}={item[key]}", item, known.get(item[key], ABSENT)) for item in desired]
    return []


def _owners(case: Case, body: Body, place: tuple[Resource, Key], path: str) -> tuple[str, ...]:
    """The owners of the field by managedFields; without those, the writers of its last recorded change."""
    if body.obj is not None and entries(body.obj):
        if "[" in path:
            return ()
        wanted = tuple(f"f:{part}" for part in path.split("."))
        owners = (entry for entry in entries(body.obj) if wanted in fields_set(entry.get("fieldsV1") or {}))
        return tuple(dict.fromkeys(str(entry.get("manager") or "?") for entry in owners))
    for attempt in reversed(case.attempts):
        for cause in reversed(attempt.causes):
            if (cause.resource, cause.key) == place and any(one.path == path for one in cause.changes.shown):
                return cause.writers
    return ()
