"""Derives the rights that a controller needs from its calls, and those that it lacked from refusals. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from kubectl_ctrl.model.attempt import Call, ControllerState
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import RecordedController, RecordedRun
from kubectl_ctrl.model.resources import EVENTS, LEASES, NAMESPACES, Resource
from kubectl_ctrl.rbac.rights import CallOf, ControllerRights, RefusedRight, Right, allows, everywhere, least
from kubectl_ctrl.value import replace

# To the server, an apply is a patch.
_VERBS = {"apply": "patch"}
_WRITING = frozenset({"create", "apply", "update", "patch"})
_NAMED = frozenset({"get", "update", "patch", "delete"})

# The message of every authorizer of an API server.
REFUSED = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>[a-z]+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)"| at the cluster scope)'
)
# The message of the admission plugin OwnerReferencesPermissionEnforcement, which names no right.
_OWNER = "cannot set blockOwnerDeletion"


def account(
    controller: str,
    plays: Sequence[tuple[RecordedRun, RecordedController]],
    calls: Iterable[CallOf],
    *,
    states: Iterable[ControllerState] = (),
    granted: Iterable[Right] = (),
    beside: Iterable[Right] = (),
    user: str,
) -> ControllerRights:
    """Compare the rights that a controller used with those that it has.

    `granted` are the rights of its rbac.yaml, `beside` those that install adds; `user` is its user name when it is
    installed.
    """
    known, given = list(calls), frozenset(granted)
    used = needed(plays, known)
    lacked = refusals(plays, known, states)
    missing: dict[str, set[Right]] = {}
    for refusal in lacked:
        missing.setdefault(refusal.user or user, set()).add(refusal.right)
    # Without granted rights there is no rbac.yaml to compare with.
    all_given = given | frozenset(beside)
    ungranted = {right for right in used if given and not any(allows(one, right) for one in all_given)}
    if ungranted:
        missing.setdefault(user, set()).update(ungranted)
    attempts = {one.attempt for one in known if one.attempt}
    begun = [run.began for run, _ in plays]
    return ControllerRights(
        controller=controller,
        used=used,
        granted=given,
        refusals=lacked,
        missing={who: least(rights) for who, rights in missing.items()},
        unused=frozenset(one for one in given if not any(allows(one, right) for right in used)),
        since=min(begun, default=None),
        runs=len(begun),
        attempts=len(attempts),
    )


def needed(plays: Sequence[tuple[RecordedRun, RecordedController]], calls: Sequence[CallOf]) -> frozenset[Right]:
    """The minimal rights for all calls: lists and watches of caches, calls of attempts, events and leases."""
    runs = {run.id: (run, played) for run, played in plays}
    fixed = _fixed_names(runs, calls)
    rights: set[Right] = set()
    for run, played in plays:
        rights.update(_watched(run, played))
    for one in calls:
        if one.run in runs and one.call.resource is not None:
            run, played = runs[one.run]
            rights.update(_of_call(one, run, fixed))
            rights.update(_owners(one.call, run, played))
    return least(rights)


def _watched(run: RecordedRun, played: RecordedController) -> Iterator[Right]:
    """The cache of each type watches it in the namespace of the run, and lists it if the server requires that."""
    for resource in dict.fromkeys((*played.primaries, *played.owns, *played.watches)):
        place = run.namespace if resource.namespaced else ""
        # A run in one namespace only reads that Namespace object.
        name = run.namespace if resource == NAMESPACES else ""
        for verb in ("list", "watch"):
            yield Right(resource.group, resource.plural, verb, place, name)


def _of_call(one: CallOf, run: RecordedRun, fixed: set[tuple[str, str]]) -> Iterator[Right]:
    call, resource = one.call, one.call.resource
    assert resource is not None
    verb = _VERBS.get(call.verb, call.verb)
    plural = f"{resource.plural}/{call.subresource}" if call.subresource else resource.plural
    # Outside an attempt: the run's own Lease, which is in one namespace even if the run is in all.
    place = call.namespace if run.namespace or one.request is None else ""
    named = verb in _NAMED and (resource.full_name, call.name) in fixed
    yield Right(resource.group, plural, verb, place, call.name if named else "")
    if resource == LEASES and one.request is None:  # renewals are not recorded
        yield Right(resource.group, plural, "update", place, call.name)
    if call.verb == "apply" and call.code == 201:  # an apply that creates an object needs the right to create it
        yield Right(resource.group, plural, "create", place)


def _owners(call: Call, run: RecordedRun, played: RecordedController) -> Iterator[Right]:
    """For OwnerReferencesPermissionEnforcement: the creator of a child needs the right to its owner's finalizers."""
    if call.verb in _WRITING and not call.subresource and call.resource in played.owns:
        for owner in played.primaries:
            place = run.namespace if owner.namespaced else ""
            yield Right(owner.group, f"{owner.plural}/finalizers", "update", place)


def _fixed_names(
    runs: dict[str, tuple[RecordedRun, RecordedController]], calls: Sequence[CallOf]
) -> set[tuple[str, str]]:
    """(Type, name) of objects with a fixed name, which a rule can name.

    These are its Lease, and objects of types that it does not watch whose name it used in several requests.
    """
    users: dict[Resource, dict[str, set[Key | None]]] = {}
    for one in calls:
        resource = one.call.resource
        if one.run not in runs or resource is None or resource == EVENTS or not one.call.name:
            continue
        played = runs[one.run][1]
        if resource not in (*played.primaries, *played.owns, *played.watches):
            users.setdefault(resource, {}).setdefault(one.call.name, set()).add(one.request)
    fixed = set()
    for resource, names in users.items():
        if resource == LEASES or all(len(requests) > 1 for requests in names.values()):
            fixed |= {(resource.full_name, name) for name in names}
    return fixed


def refusals(
    plays: Sequence[tuple[RecordedRun, RecordedController]],
    calls: Sequence[CallOf],
    states: Iterable[ControllerState] = (),
) -> tuple[RefusedRight, ...]:
    """Rights that were refused at their last use, each once."""
    runs = {run.id: (run, played) for run, played in plays}
    found: dict[tuple[Right, str], RefusedRight] = {}
    for one in sorted((call for call in calls if call.run in runs), key=lambda one: one.call.started):
        refused = list(_refused(one.call, runs[one.run][1]))
        for refusal in refused:
            key = (refusal.right, refusal.user)
            before = found.pop(key, None)
            found[key] = replace(refusal, count=1 + (before.count if before else 0))
        if not refused and one.call.granted:
            # The right was granted meanwhile.
            allowed = _proven(one.call, runs[one.run][1])
            found = {key: value for key, value in found.items() if key[0] not in allowed}
    for state in states:
        for refusal in _parsed(state.message, state.at):
            found.setdefault((refusal.right, refusal.user), refusal)
    return tuple(found.values())


def _refused(call: Call, played: RecordedController) -> Iterator[RefusedRight]:
    if call.code != 403:
        return
    parsed = list(_parsed(call.error, call.started, call.id))
    yield from parsed
    if not parsed and _OWNER in call.error:
        for owner in played.primaries:
            right = Right(owner.group, f"{owner.plural}/finalizers", "update", call.namespace)
            yield RefusedRight(right=right, user="", at=call.started, call=call.id)


def _parsed(text: str, at: float, call: str = "") -> Iterator[RefusedRight]:
    """The refusals in a message of the server; the messages of quotas and webhooks do not match."""
    for match in REFUSED.finditer(text):
        right = Right(match["group"], match["resource"], match["verb"], match["namespace"] or "")
        yield RefusedRight(right=right, user=match["user"], at=at, call=call)


def _proven(call: Call, played: RecordedController) -> set[Right]:
    """The rights that a successful call proves, in its namespace and cluster-wide."""
    if call.resource is None:
        return set()
    verb = _VERBS.get(call.verb, call.verb)
    plural = f"{call.resource.plural}/{call.subresource}" if call.subresource else call.resource.plural
    rights = {Right(call.resource.group, plural, verb, call.namespace)}
    if call.verb in _WRITING and call.resource in played.owns:
        rights |= {Right(one.group, f"{one.plural}/finalizers", "update", call.namespace) for one in played.primaries}
    return rights | set(map(everywhere, rights))
