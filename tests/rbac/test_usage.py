"""From recorded calls to rights: needed, refused and unused ones."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pytest

from kubectl_ctrl.model.attempt import Call, ControllerState
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.record import RecordedController, RecordedRun
from kubectl_ctrl.model.resources import CONFIGMAPS, DEPLOYMENTS, EVENTS, LEASES, NAMESPACES, Resource
from kubectl_ctrl.rbac.rights import CallOf, ControllerRights, Right
from kubectl_ctrl.rbac.usage import account, needed, refusals
from kubectl_ctrl.value import replace
from tests.history.made import FOO, FOOS, NOON, RUN

WEB, DB = Request("default", "web"), Request("default", "db")
GROUP = FOOS.group
SA = "system:serviceaccount:foo-system:kubectl-ctrl-foo"
WATCHED = {
    Right(GROUP, "foos", "list", "default"),
    Right(GROUP, "foos", "watch", "default"),
    Right("apps", "deployments", "list", "default"),
    Right("apps", "deployments", "watch", "default"),
}


def call(verb: str, resource: Resource, *, name: str = "web", at: float = 0, **more: object) -> Call:
    made = Call(id="r7f3-1.1", verb=verb, resource=resource, namespace="default", name=name, started=NOON + at)
    return replace(made, **{"code": 200, **more})  # type: ignore[arg-type]


def of(made: Call, request: Request | None = WEB, run: str = "r7f3") -> CallOf:
    return CallOf(run=run, attempt=f"{run}-1" if request else "", request=request, call=made)


def extra(*calls: CallOf, run: RecordedRun = RUN, played: RecordedController = FOO) -> set[Right]:
    """The rights beyond those of the caches."""
    return set(needed([(run, played)], calls)) - WATCHED


def refused(text: str, *, verb: str = "patch", at: float = 0) -> CallOf:
    return of(call(verb, DEPLOYMENTS, code=403, error=text, at=at))


def says(
    user: str, verb: str = "patch", resource: str = "deployments", where: str = 'in the namespace "default"'
) -> str:
    return (
        f'deployments.apps "web" is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "apps"'
        f" {where}"
    )


# --- what was needed ---


def test_caches_list_and_watch_in_the_scope_of_the_run() -> None:
    assert needed([(RUN, FOO)], []) == WATCHED
    everywhere = needed([(replace(RUN, namespace=""), FOO)], [])
    assert everywhere == {replace(right, namespace="") for right in WATCHED}


def test_a_run_of_one_namespace_needs_rights_in_that_one_alone() -> None:
    played = replace(FOO, owns=(), watches=(NAMESPACES,))
    assert extra(played=played) == {Right("", "namespaces", verb, "", "default") for verb in ("list", "watch")}


def test_an_apply_needs_patch_and_create_if_it_created_an_object() -> None:
    status = call("apply", FOOS, subresource="status")
    assert extra(of(status)) == {Right(GROUP, "foos/status", "patch", "default")}
    made = call("apply", CONFIGMAPS, code=201)
    assert extra(of(made)) == {Right("", "configmaps", verb, "default") for verb in ("patch", "create")}


def test_a_dry_run_and_a_refused_call_need_the_same_right() -> None:
    right = {Right("", "configmaps", "delete", "default")}
    assert extra(of(call("delete", CONFIGMAPS, dry_run=True))) == right
    assert extra(of(call("delete", CONFIGMAPS, code=403))) == right
    assert extra(of(call("delete", CONFIGMAPS, code=None))) == right


def test_creating_children_needs_the_right_to_the_finalizers_of_their_owner() -> None:
    assert extra(of(call("create", DEPLOYMENTS))) == {
        Right("apps", "deployments", "create", "default"),
        Right(GROUP, "foos/finalizers", "update", "default"),
    }
    assert extra(of(call("delete", DEPLOYMENTS))) == {Right("apps", "deployments", "delete", "default")}


def test_the_right_to_the_lease_has_its_name_and_namespace() -> None:
    # Renewals are too many to be recorded.
    calls = [of(call(verb, LEASES, name="kubectl-ctrl-foo"), None) for verb in ("get", "create")]
    run = replace(RUN, namespace="")
    lease = {right for right in needed([(run, FOO)], calls) if right.resource == "leases"}
    assert lease == {
        Right(LEASES.group, "leases", "create", "default"),
        Right(LEASES.group, "leases", "get", "default", "kubectl-ctrl-foo"),
        Right(LEASES.group, "leases", "update", "default", "kubectl-ctrl-foo"),
    }


def test_a_right_has_a_name_if_the_controller_chose_it() -> None:
    settings = [of(call("get", CONFIGMAPS, name="settings"), request) for request in (WEB, DB)]
    assert extra(*settings) == {Right("", "configmaps", "get", "default", "settings")}
    per_object = [of(call("get", CONFIGMAPS, name=request.name), request) for request in (WEB, DB)]
    assert extra(*per_object) == {Right("", "configmaps", "get", "default")}
    events = [of(call("patch", EVENTS, name="web.17")), of(call("create", EVENTS, name="web.17"), DB)]
    assert extra(*events) == {Right("", "events", verb, "default") for verb in ("create", "patch")}


def test_a_cluster_wide_right_needs_no_role_in_a_namespace() -> None:
    runs = [(RUN, FOO), (replace(RUN, id="r8", namespace=""), FOO)]
    found = needed(runs, [of(call("patch", CONFIGMAPS)), of(call("patch", CONFIGMAPS), run="r8")])
    assert {right.namespace for right in found} == {""}


# --- what was refused ---


def test_a_refusal_has_its_right_and_its_user() -> None:
    [found] = refusals([(RUN, FOO)], [refused(says("jane")), refused(says("jane"), at=5)])
    assert found.right == Right("apps", "deployments", "patch", "default")
    assert (found.user, found.count, found.at) == ("jane", 2, NOON + 5)


def test_refusals_at_cluster_scope_and_of_a_subresource() -> None:
    wide = refused(says("jane", "list", where="at the cluster scope"))
    scale = refused(says("jane", "patch", "deployments/scale"))
    assert {one.right for one in refusals([(RUN, FOO)], [wide, scale])} == {
        Right("apps", "deployments", "list"),
        Right("apps", "deployments/scale", "patch", "default"),
    }


def test_a_right_granted_later_is_not_missing() -> None:
    given = of(call("apply", DEPLOYMENTS, at=9))
    assert refusals([(RUN, FOO)], [refused(says("jane")), given]) == ()
    assert len(refusals([(RUN, FOO)], [given, refused(says("jane"), at=10)])) == 1


def test_a_refused_list_is_read_from_the_state() -> None:
    message = f"the cache of deployments.apps is forbidden: {says(SA, 'list')}"
    state = ControllerState(controller="foo", at=NOON, leading=True, synced=False, entries=(), message=message)
    [found] = refusals([(RUN, FOO)], [], [state])
    assert (found.right, found.user) == (Right("apps", "deployments", "list", "default"), SA)


def test_a_refused_owner_reference_is_a_missing_right_to_finalizers() -> None:
    text = (
        'deployments.apps "web" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource '
        "you can't set finalizers on: , <nil>"
    )
    [found] = refusals([(RUN, FOO)], [refused(text, verb="create")])
    assert (found.right, found.user) == (Right(GROUP, "foos/finalizers", "update", "default"), "")


def test_a_created_child_proves_the_right_to_the_finalizers_of_its_owner() -> None:
    lacked = refused("cannot set blockOwnerDeletion", verb="create")
    assert refusals([(RUN, FOO)], [lacked, of(call("create", DEPLOYMENTS, code=201, at=9))]) == ()


@pytest.mark.parametrize(
    "text", ['deployments.apps "web" is forbidden: exceeded quota: none', "A webhook said no.", ""]
)
def test_an_error_that_no_right_would_prevent_is_no_refusal(text: str) -> None:
    assert refusals([(RUN, FOO)], [refused(text)]) == ()


# --- together with what is granted ---


def stated(*calls: CallOf, granted: AbstractSet[Right], beside: AbstractSet[Right] = frozenset()) -> ControllerRights:
    return account("foo", [(RUN, FOO)], calls, granted=granted, beside=beside, user=SA)


GRANTED = {replace(right, namespace="") for right in WATCHED}


def test_a_used_right_without_a_grant_is_missing() -> None:
    found = stated(of(call("patch", CONFIGMAPS)), granted=GRANTED)
    assert found.missing == {SA: {Right("", "configmaps", "patch", "default")}}
    assert stated(granted=GRANTED).missing == {}
    assert stated(of(call("patch", CONFIGMAPS)), granted=set()).missing == {}, "there is nothing to compare with"


def test_rights_from_other_roles_are_granted_too() -> None:
    lease = of(call("get", LEASES, name="kubectl-ctrl-foo"), None)
    beside = {Right(LEASES.group, "leases", verb, "foo-system") for verb in ("get", "update")}
    assert stated(lease, granted=GRANTED, beside=beside).missing == {}
    assert stated(lease, granted=GRANTED).missing != {}


def test_wildcards_match() -> None:
    star = Right("*", "*", "*")
    found = stated(of(call("patch", CONFIGMAPS)), granted={star})
    assert (found.missing, found.unused) == ({}, frozenset())
    scale = Right("apps", "*/scale", "patch")
    assert stated(of(call("patch", DEPLOYMENTS, subresource="scale")), granted={*GRANTED, scale}).missing == {}


def test_unused_rights_come_with_the_evidence() -> None:
    secrets = Right("", "secrets", "get")
    found = stated(of(call("get", FOOS)), granted={*GRANTED, secrets, Right(GROUP, "foos", "get")})
    assert found.unused == {secrets}
    assert (found.since, found.runs, found.attempts) == (RUN.began, 1, 1)


def test_missing_rights_are_listed_by_user() -> None:
    own = {Right("apps", "deployments", "patch"), Right(GROUP, "foos/finalizers", "update")}
    found = stated(refused(says("jane")), granted=GRANTED | own)
    assert found.missing == {"jane": {Right("apps", "deployments", "patch", "default")}}
