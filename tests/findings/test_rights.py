"""From recorded calls to rights: what was needed, what was refused, what was granted in vain."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import pytest

from kubectl_ctrl.model.attempt import Call, State
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.record import Played, Run
from kubectl_ctrl.model.resources import CONFIGMAPS, DEPLOYMENTS, EVENTS, LEASES, NAMESPACES, Resource
from kubectl_ctrl.rbac.rights import Account, CallOf, Right
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


def extra(*calls: CallOf, run: Run = RUN, played: Played = FOO) -> set[Right]:
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


def test_caches_list_and_watch_where_the_run_is() -> None:
    assert needed([(RUN, FOO)], []) == WATCHED
    everywhere = needed([(replace(RUN, namespace=""), FOO)], [])
    assert everywhere == {replace(right, namespace="") for right in WATCHED}


def test_a_run_of_one_namespace_looks_at_that_one_alone() -> None:
    played = replace(FOO, owns=(), watches=(NAMESPACES,))
    assert extra(played=played) == {Right("", "namespaces", verb, "", "default") for verb in ("list", "watch")}


def test_an_apply_is_a_patch_and_a_create_where_it_made_something() -> None:
    status = call("apply", FOOS, subresource="status")
    assert extra(of(status)) == {Right(GROUP, "foos/status", "patch", "default")}
    made = call("apply", CONFIGMAPS, code=201)
    assert extra(of(made)) == {Right("", "configmaps", verb, "default") for verb in ("patch", "create")}


def test_a_dry_run_and_a_refused_call_need_the_same_right() -> None:
    right = {Right("", "configmaps", "delete", "default")}
    assert extra(of(call("delete", CONFIGMAPS, dry_run=True))) == right
    assert extra(of(call("delete", CONFIGMAPS, code=403))) == right
    assert extra(of(call("delete", CONFIGMAPS, code=None))) == right


def test_who_makes_children_needs_the_finalizers_of_their_owner() -> None:
    assert extra(of(call("create", DEPLOYMENTS))) == {
        Right("apps", "deployments", "create", "default"),
        Right(GROUP, "foos/finalizers", "update", "default"),
    }
    assert extra(of(call("delete", DEPLOYMENTS))) == {Right("apps", "deployments", "delete", "default")}


def test_its_lease_is_named_and_stays_in_its_place() -> None:
    # Renewals are too many to be recorded.
    calls = [of(call(verb, LEASES, name="kubectl-ctrl-foo"), None) for verb in ("get", "create")]
    run = replace(RUN, namespace="")
    lease = {right for right in needed([(run, FOO)], calls) if right.resource == "leases"}
    assert lease == {
        Right(LEASES.group, "leases", "create", "default"),
        Right(LEASES.group, "leases", "get", "default", "kubectl-ctrl-foo"),
        Right(LEASES.group, "leases", "update", "default", "kubectl-ctrl-foo"),
    }


def test_names_are_kept_where_they_are_the_controllers_own() -> None:
    settings = [of(call("get", CONFIGMAPS, name="settings"), request) for request in (WEB, DB)]
    assert extra(*settings) == {Right("", "configmaps", "get", "default", "settings")}
    per_object = [of(call("get", CONFIGMAPS, name=request.name), request) for request in (WEB, DB)]
    assert extra(*per_object) == {Right("", "configmaps", "get", "default")}
    events = [of(call("patch", EVENTS, name="web.17")), of(call("create", EVENTS, name="web.17"), DB)]
    assert extra(*events) == {Right("", "events", verb, "default") for verb in ("create", "patch")}


def test_what_is_allowed_everywhere_needs_no_role_in_a_namespace() -> None:
    runs = [(RUN, FOO), (replace(RUN, id="r8", namespace=""), FOO)]
    found = needed(runs, [of(call("patch", CONFIGMAPS)), of(call("patch", CONFIGMAPS), run="r8")])
    assert {right.namespace for right in found} == {""}


# --- what was refused ---


def test_a_refusal_names_its_right_and_who_lacks_it() -> None:
    [found] = refusals([(RUN, FOO)], [refused(says("jane")), refused(says("jane"), at=5)])
    assert found.right == Right("apps", "deployments", "patch", "default")
    assert (found.user, found.count, found.at) == ("jane", 2, NOON + 5)


def test_one_at_the_scope_of_the_cluster_and_one_of_a_subresource() -> None:
    wide = refused(says("jane", "list", where="at the cluster scope"))
    scale = refused(says("jane", "patch", "deployments/scale"))
    assert {one.right for one in refusals([(RUN, FOO)], [wide, scale])} == {
        Right("apps", "deployments", "list"),
        Right("apps", "deployments/scale", "patch", "default"),
    }


def test_what_was_granted_since_is_not_lacked() -> None:
    given = of(call("apply", DEPLOYMENTS, at=9))
    assert refusals([(RUN, FOO)], [refused(says("jane")), given]) == ()
    assert len(refusals([(RUN, FOO)], [given, refused(says("jane"), at=10)])) == 1


def test_a_cache_that_may_not_list_says_so_in_the_state() -> None:
    message = f"the cache of deployments.apps is forbidden: {says(SA, 'list')}"
    state = State(controller="foo", at=NOON, leading=True, synced=False, entries=(), message=message)
    [found] = refusals([(RUN, FOO)], [], [state])
    assert (found.right, found.user) == (Right("apps", "deployments", "list", "default"), SA)


def test_the_guard_of_owner_references_names_no_right_and_yet_means_one() -> None:
    text = (
        'deployments.apps "web" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource '
        "you can't set finalizers on: , <nil>"
    )
    [found] = refusals([(RUN, FOO)], [refused(text, verb="create")])
    assert (found.right, found.user) == (Right(GROUP, "foos/finalizers", "update", "default"), "")


def test_a_child_that_was_made_proves_the_right_to_its_owner() -> None:
    lacked = refused("cannot set blockOwnerDeletion", verb="create")
    assert refusals([(RUN, FOO)], [lacked, of(call("create", DEPLOYMENTS, code=201, at=9))]) == ()


@pytest.mark.parametrize(
    "text", ['deployments.apps "web" is forbidden: exceeded quota: none', "A webhook said no.", ""]
)
def test_what_no_right_would_help_against_is_none(text: str) -> None:
    assert refusals([(RUN, FOO)], [refused(text)]) == ()


# --- together with what is granted ---


def stated(*calls: CallOf, granted: AbstractSet[Right], beside: AbstractSet[Right] = frozenset()) -> Account:
    return account("foo", [(RUN, FOO)], calls, granted=granted, beside=beside, user=SA)


GRANTED = {replace(right, namespace="") for right in WATCHED}


def test_what_was_done_and_is_not_granted_is_missing_to_its_own_account() -> None:
    found = stated(of(call("patch", CONFIGMAPS)), granted=GRANTED)
    assert found.missing == {SA: {Right("", "configmaps", "patch", "default")}}
    assert stated(granted=GRANTED).missing == {}
    assert stated(of(call("patch", CONFIGMAPS)), granted=set()).missing == {}, "there is nothing to compare with"


def test_what_it_gets_without_its_own_roles_is_granted_too() -> None:
    lease = of(call("get", LEASES, name="kubectl-ctrl-foo"), None)
    beside = {Right(LEASES.group, "leases", verb, "foo-system") for verb in ("get", "update")}
    assert stated(lease, granted=GRANTED, beside=beside).missing == {}
    assert stated(lease, granted=GRANTED).missing != {}


def test_stars_are_understood() -> None:
    star = Right("*", "*", "*")
    found = stated(of(call("patch", CONFIGMAPS)), granted={star})
    assert (found.missing, found.unused) == ({}, frozenset())
    scale = Right("apps", "*/scale", "patch")
    assert stated(of(call("patch", DEPLOYMENTS, subresource="scale")), granted={*GRANTED, scale}).missing == {}


def test_what_was_granted_and_never_used_is_told_with_the_evidence() -> None:
    secrets = Right("", "secrets", "get")
    found = stated(of(call("get", FOOS)), granted={*GRANTED, secrets, Right(GROUP, "foos", "get")})
    assert found.unused == {secrets}
    assert (found.since, found.runs, found.attempts) == (RUN.began, 1, 1)


def test_each_who_lacks_something_is_told_alone() -> None:
    own = {Right("apps", "deployments", "patch"), Right(GROUP, "foos/finalizers", "update")}
    found = stated(refused(says("jane")), granted=GRANTED | own)
    assert found.missing == {"jane": {Right("apps", "deployments", "patch", "default")}}
