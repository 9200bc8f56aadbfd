"""Roles and bindings: what they allow, who may write them, and the roles of a new cluster."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.sandbox.auth.bootstrap import bootstrap
from kubectl_ctrl.sandbox.auth.guard import RequestRecord
from kubectl_ctrl.sandbox.auth.rbac import CLUSTER_ROLES, ROLES
from kubectl_ctrl.sandbox.auth.tokens import Authenticator
from kubectl_ctrl.sandbox.auth.users import User
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import MAPS_PATH, configmap
from tests.sandbox.users import BINDINGS_PATH, RBAC, ROLES_PATH, Users, bound, cluster_role, role, rule

ACCESS = "/apis/authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
SECRETS_PATH = "/api/v1/namespaces/default/secrets"
MAKER = rule("create update patch", "roles rolebindings", groups=RBAC)


@pytest.fixture
async def users() -> Users:
    tokens = {name: User(name=name, groups=("devs",)) for name in ("bob", "eve")}
    return Users(ScriptedServer(FakeClock(), Authenticator(key=b"k", admin_token="admin", tokens=tokens)))


def give(users: Users, *rules: Obj, subject: str = "User bob") -> None:
    users.server.create(role("some", *rules))
    users.server.create(bound("some", "some", subject=subject))


# -- what they allow


@pytest.mark.parametrize("subject", ["User bob", "Group devs", "Group system:authenticated"])
async def test_a_binding_gives_a_role_to_a_user_or_group(users: Users, subject: str) -> None:
    give(users, rule("list", "pods"), subject=subject)
    assert await users.answer("bob", "GET", PODS) == "200"


async def test_a_role_counts_in_its_namespace_alone(users: Users) -> None:
    give(users, rule("list", "pods"))
    assert (await users.answer("bob", "GET", "/api/v1/namespaces/kube-system/pods")).startswith("403 ")
    assert (await users.answer("bob", "GET", "/api/v1/pods")).startswith("403 ")


async def test_a_cluster_role_binding_counts_everywhere(users: Users) -> None:
    users.server.create(cluster_role("all", rule("list", "pods")))
    users.server.create(bound("all", "all", "ClusterRole", namespace=""))
    assert await users.answer("bob", "GET", "/api/v1/pods") == "200"


async def test_a_change_of_a_role_counts_at_once(users: Users) -> None:
    give(users, rule("list", "pods"))
    assert await users.answer("bob", "GET", PODS) == "200"
    users.server.change(ROLES, "some", {"rules": []})
    assert (await users.answer("bob", "GET", PODS)).startswith("403 ")


async def test_a_restored_state_counts_at_once(users: Users) -> None:
    before = users.server.version
    give(users, rule("list", "pods"))
    assert await users.answer("bob", "GET", PODS) == "200"
    users.server.restore(before)
    assert (await users.answer("bob", "GET", PODS)).startswith("403 ")


async def test_a_rule_with_names_allows_a_list_of_one_name(users: Users) -> None:
    give(users, rule("get list", "configmaps", names="a"))
    users.server.create(configmap("a"))
    assert await users.answer("bob", "GET", f"{MAPS_PATH}/a") == "200"
    assert await users.answer("bob", "GET", MAPS_PATH, fieldSelector="metadata.name=a") == "200"
    assert (await users.answer("bob", "GET", MAPS_PATH)).startswith("403 configmaps is forbidden")


async def test_a_watch_needs_its_own_verb(users: Users) -> None:
    give(users, rule("list", "pods"))
    refused = 'cannot watch resource "pods" in API group "" in the namespace "default"'
    assert refused in await users.answer("bob", "GET", PODS, watch="1")
    users.server.change(ROLES, "some", {"rules": [rule("watch", "pods")]})
    assert await users.answer("bob", "GET", PODS, watch="1", timeoutSeconds="1") == "200"


async def test_a_missing_role_is_named(users: Users) -> None:
    users.server.create(bound("some", "nothing"))
    told = await users.answer("bob", "GET", PODS)
    assert told.endswith('in the namespace "default": RBAC: role.rbac.authorization.k8s.io "nothing" not found')


# -- who may write them


async def test_nobody_grants_more_than_they_have(users: Users) -> None:
    give(users, MAKER, rule("get", "pods"))
    new = role("new", rule("get delete", "pods secrets"), rule("list", "secrets", names="a b"))
    assert await users.answer("bob", "POST", ROLES_PATH, new) == (
        '403 roles.rbac.authorization.k8s.io "new" is forbidden: '
        'user "bob" (groups=["devs" "system:authenticated"]) is attempting '
        "to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}'
    )
    assert users.server.get(ROLES, "new") is None
    assert await users.answer("bob", "POST", ROLES_PATH, role("new", rule("get", "pods"))) == "201"
    code, _ = await users("bob", "PUT", f"{ROLES_PATH}/new", role("new", rule("get", "secrets")))
    assert code == 403


async def test_the_verb_escalate_allows_it(users: Users) -> None:
    give(users, MAKER, rule("escalate", "roles", groups=RBAC))
    assert await users.answer("bob", "POST", ROLES_PATH, role("new", rule("get", "secrets"))) == "201"


async def test_a_binding_needs_the_rights_of_its_role(users: Users) -> None:
    give(users, MAKER, rule("get", "pods"))
    users.server.create(role("more", rule("get", "pods secrets")))
    told = await users.answer("bob", "POST", BINDINGS_PATH, bound("new", "more"))
    assert told.endswith('not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')
    assert await users.answer("bob", "POST", BINDINGS_PATH, bound("new", "some")) == "201"


async def test_the_verb_bind_allows_it(users: Users) -> None:
    give(users, MAKER, rule("bind", "roles", groups=RBAC, names="more"))
    users.server.create(role("more", rule("get", "pods")))
    assert await users.answer("bob", "POST", BINDINGS_PATH, bound("new", "more")) == "201"


async def test_an_aggregation_needs_all_rights(users: Users) -> None:
    users.server.create(cluster_role("maker", rule("create", "clusterroles", groups=RBAC)))
    users.server.create(bound("maker", "maker", "ClusterRole", namespace=""))
    new = {**cluster_role("new"), "aggregationRule": {"clusterRoleSelectors": [{}]}}
    told = await users.answer("bob", "POST", f"/apis/{RBAC}/v1/clusterroles", new)
    assert told.endswith('"new" is forbidden: must have cluster-admin privileges to use the aggregationRule')


# -- a new cluster


async def test_a_new_cluster_has_the_roles_of_kubernetes(users: Users) -> None:
    bootstrap(users.server)
    assert await users.answer("bob", "GET", "/version") == "200"
    view = users.server.get(CLUSTER_ROLES, "view")
    assert view is not None
    assert rule("get list watch", "deployments", groups="apps")["verbs"] == view["rules"][0]["verbs"]
    users.server.create(bound("viewers", "view", "ClusterRole"))
    assert await users.answer("bob", "GET", PODS) == "200"
    assert (await users.answer("bob", "GET", SECRETS_PATH)).startswith("403 ")


async def test_an_aggregated_role_follows_its_parts(users: Users) -> None:
    bootstrap(users.server)
    users.server.create(bound("viewers", "view", "ClusterRole"))
    refused = await users.answer("bob", "GET", SECRETS_PATH)
    part = cluster_role("part", rule("list", "secrets"))
    part["metadata"]["labels"] = {f"{RBAC}/aggregate-to-view": "true"}
    users.server.create(part)
    assert (refused[:3], await users.answer("bob", "GET", SECRETS_PATH)) == ("403", "200")
    users.server.delete(CLUSTER_ROLES, "part")
    assert await users.answer("bob", "GET", SECRETS_PATH) == refused


# -- reviews


def may(verb: str, resource: str, **more: str) -> Obj:
    return {"spec": {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": "default", **more}}}


async def test_a_review_gives_the_reason(users: Users) -> None:
    give(users, rule("get", "pods"))
    code, found = await users("bob", "POST", f"{ACCESS}/subjectaccessreviews", may("get", "pods"))
    assert code == 403
    bootstrap(users.server)
    code, found = await users("bob", "POST", f"{ACCESS}/selfsubjectaccessreviews", may("get", "pods"))
    reason = 'RBAC: allowed by RoleBinding "some/default" of Role "some" to User "bob"'
    assert (code, found["status"]) == (201, {"allowed": True, "reason": reason})
    code, found = await users("bob", "POST", f"{ACCESS}/selfsubjectaccessreviews", may("list", "pods"))
    assert (code, found["status"]) == (201, {"allowed": False})


async def test_a_review_of_another_user(users: Users) -> None:
    give(users, rule("get", "pods"))
    asked = may("get", "pods")
    asked["spec"]["user"] = "bob"
    _, found = await users("admin", "POST", f"{ACCESS}/subjectaccessreviews", asked)
    assert found["status"]["allowed"]
    assert found["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:user"] == {}


async def test_the_rules_of_a_user(users: Users) -> None:
    give(users, rule("get", "pods"), rule("list", "secrets", names="a"))
    users.server.create(
        cluster_role("reviews", rule("create", "selfsubjectrulesreviews", groups="authorization.k8s.io"))
    )
    users.server.create(bound("reviews", "reviews", "ClusterRole", namespace=""))
    path = f"{ACCESS}/selfsubjectrulesreviews"
    code, found = await users("bob", "POST", path, {"spec": {"namespace": "default"}})
    rules = [rule("create", "selfsubjectrulesreviews", groups="authorization.k8s.io"), rule("get", "pods")]
    rules.append(rule("list", "secrets", names="a"))
    assert (code, found["status"]) == (201, {"resourceRules": rules, "nonResourceRules": [], "incomplete": False})


async def test_an_open_server_allows_everything() -> None:
    users = Users(ScriptedServer(FakeClock()))
    _, found = await users("", "POST", f"{ACCESS}/selfsubjectaccessreviews", may("get", "pods"))
    assert found["status"] == {"allowed": True}
    _, found = await users("", "POST", f"{ACCESS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert found["status"]["resourceRules"] == [rule("*", "*", groups="*")]
    _, found = await users("", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert found["status"]["userInfo"]["username"] == "kubernetes-admin"


# -- records


async def test_a_listener_hears_of_every_request(users: Users) -> None:
    heard: list[RequestRecord] = []
    users.server.guard.listeners.append(heard.append)
    await users("admin", "POST", MAPS_PATH, configmap("a"))
    await users("bob", "GET", f"{MAPS_PATH}/a")
    await users("wrong", "GET", "/version")
    await users("admin", "GET", PODS, watch="1", timeoutSeconds="1")
    told = [(one.user.name if one.user else "", one.verb, one.resource, one.name, one.code) for one in heard]
    assert told == [
        ("kubernetes-admin", "create", "configmaps", "a", 201),
        ("bob", "get", "configmaps", "a", 403),
        ("", "get", "", "", 401),
        ("kubernetes-admin", "watch", "pods", "", 200),
    ]
    assert (heard[0].namespace, heard[0].audit_id, heard[2].path) == ("default", "a-1", "/version")


# -- every decision is that of an evaluator without an index


VERBS = ("get", "list", "create", "*")
GROUPS = ("", "apps", "*")
THINGS = ("pods", "pods/log", "*/log", "secrets", "*")
NAMES = ((), ("a",), ("a", "b"))
SUBJECTS = ("User bob", "Group devs", "Group ops", "User eve")


@pytest.mark.parametrize("seed", range(40))
async def test_decisions_are_those_of_the_rules_one_by_one(users: Users, seed: int) -> None:
    rng = Random(seed)
    server, held = users.server, []
    for number in range(rng.randint(1, 5)):
        rules = [_random_rule(rng) for _ in range(rng.randint(1, 3))]
        subject, everywhere = rng.choice(SUBJECTS), rng.random() < 0.3
        if everywhere:
            server.create(cluster_role(f"r{number}", *rules))
        else:
            server.create(role(f"r{number}", *rules))
        kind = "ClusterRole" if everywhere else "Role"
        server.create(
            bound(f"b{number}", f"r{number}", kind, subject=subject, namespace="" if everywhere else "default")
        )
        held += [(subject, everywhere, one) for one in rules]
    for _ in range(40):
        asked = {
            "verb": rng.choice(("get", "list", "create", "delete")),
            "group": rng.choice(("", "apps", "batch")),
            "resource": rng.choice(("pods", "secrets")),
            "subresource": rng.choice(("", "log", "status")),
            "namespace": rng.choice(("default", "other", "")),
            "name": rng.choice(("", "a", "c")),
        }
        body = {"spec": {"user": "bob", "groups": ["devs"], "resourceAttributes": asked}}
        _, found = await users("admin", "POST", f"{ACCESS}/subjectaccessreviews", body)
        assert found["status"]["allowed"] == any(_allows(*one, asked) for one in held), (asked, held)


def _random_rule(rng: Random) -> Obj:
    found = {"verbs": [rng.choice(VERBS)], "apiGroups": [rng.choice(GROUPS)], "resources": [rng.choice(THINGS)]}
    names = rng.choice(NAMES)
    return {**found, **({"resourceNames": list(names)} if names else {})}


def _allows(subject: str, everywhere: bool, one: Obj, asked: Any) -> bool:
    if subject not in ("User bob", "Group devs") or not (everywhere or asked["namespace"] == "default"):
        return False
    if one["verbs"][0] not in ("*", asked["verb"]) or one["apiGroups"][0] not in ("*", asked["group"]):
        return False
    if "resourceNames" in one and asked["name"] not in one["resourceNames"]:
        return False
    resource, _, sub = one["resources"][0].partition("/")
    if one["resources"] == ["*"]:
        return True
    return bool(sub == asked["subresource"] and resource in ("*", asked["resource"]))


async def test_the_request_of_a_watch_is_refused_before_it_opens(users: Users) -> None:
    stream = await users.server.open(HttpRequest(method="GET", path=PODS, query=(("watch", "1"),)))
    assert stream.status == 403


# -- odd paths


async def test_an_odd_path_gives_no_more_than_the_usual_one(users: Users) -> None:
    """What a request may do and what it does are read from the same path."""
    bootstrap(users.server)
    users.server.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden"}})
    users.server.create(bound("sees", "view", "ClusterRole", namespace=""))
    for path in (
        "/api/v1/secrets",
        "/apis//v1/secrets",  # bob may read every path below /apis/
        "//apis//v1/secrets",
        "/api/v1/namespaces//secrets",  # and the namespace `secrets`
        "/api/v1//namespaces/default/secrets",
        "/api/v1/namespaces/default%2Fsecrets",
        "/api/v1/namespaces/default/secrets%2Fhidden",
        "/apis%2F%2Fv1/secrets",
        "/apis/%2fv1/secrets",
    ):
        request = HttpRequest(method="GET", path=path, headers={"authorization": "Bearer bob"})
        assert (await users.server.send(request)).status in (403, 404), path


@pytest.mark.parametrize("value", ["False", "0", "FALSE"])
async def test_a_list_that_is_no_watch_is_authorized_as_a_list(users: Users, value: str) -> None:
    give(users, rule("list", "pods"))
    headers = {"authorization": "Bearer bob"}
    stream = await users.server.open(HttpRequest(method="GET", path=PODS, query=(("watch", value),), headers=headers))
    ((line,),) = [lines async for lines in stream.batches()]
    assert line.startswith(b'{"kind":"PodList"')
