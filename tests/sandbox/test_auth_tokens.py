"""Tokens of ServiceAccounts, and requests in the name of other users."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import SECRETS, Resource
from kubectl_ctrl.sandbox.auth.bootstrap import bootstrap
from kubectl_ctrl.sandbox.auth.tokens import ISSUER, Authenticator
from kubectl_ctrl.sandbox.auth.users import User
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.users import Users, bound, cluster_role, role, rule

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ACCOUNTS_PATH = "/api/v1/namespaces/default/serviceaccounts"
SECRETS_PATH = "/api/v1/namespaces/default/secrets"
PODS = "/api/v1/namespaces/default/pods"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = "/apis/authentication.k8s.io/v1/tokenreviews"
ROBOT = "system:serviceaccount:default:robot"


@pytest.fixture
async def users() -> Users:
    auth = Authenticator(key=b"k", admin_token="admin", tokens={"bob": User(name="bob")}, ca=b"PEM")
    server = ScriptedServer(FakeClock(), auth)
    bootstrap(server)
    server.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    return Users(server)


async def requested(users: Users, **spec: Any) -> Obj:
    code, found = await users("admin", "POST", f"{ACCOUNTS_PATH}/robot/token", {"spec": spec})
    assert code == 201, found
    return dict(found)


def claims_of(token: str) -> Obj:
    text = token.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))


# -- tokens


async def test_a_token_has_the_claims_of_its_account(users: Users) -> None:
    found = await requested(users, expirationSeconds=900)
    now = int(users.server.clock.now())
    claims = claims_of(found["status"]["token"])
    account = users.server.get(ACCOUNTS, "robot")
    assert account is not None
    uid = account["metadata"]["uid"]
    assert claims.pop("jti")
    assert claims == {
        "aud": [ISSUER],
        "exp": now + 900,
        "iat": now,
        "iss": ISSUER,
        "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": uid}},
        "nbf": now,
        "sub": ROBOT,
    }
    assert found["spec"] == {"audiences": [ISSUER], "expirationSeconds": 900, "boundObjectRef": None}
    assert (found["metadata"]["name"], found["metadata"]["uid"]) == ("robot", uid)


async def test_a_token_authenticates_its_account(users: Users) -> None:
    token = (await requested(users))["status"]["token"]
    code, found = await users(token, "POST", WHO, {})
    user = found["status"]["userInfo"]
    assert (code, user["username"]) == (201, ROBOT)
    assert user["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    users.server.create(role("some", rule("list", "pods")))
    users.server.create(bound("some", "some", subject="ServiceAccount robot"))
    assert await users.answer(token, "GET", PODS) == "200"


async def test_a_changed_token_is_refused(users: Users) -> None:
    head, body, signature = (await requested(users))["status"]["token"].split(".")
    claims = {**claims_of(f"{head}.{body}.{signature}"), "sub": "system:serviceaccount:default:other"}
    forged = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    assert await users.answer(f"{head}.{forged}.{signature}", "GET", PODS) == "401 Unauthorized"
    assert await users.answer("a.b.c", "GET", PODS) == "401 Unauthorized"


async def test_a_token_of_another_server_is_refused(users: Users) -> None:
    other = ScriptedServer(FakeClock(), Authenticator(key=b"other", admin_token="admin"))
    other.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    token = (await requested(Users(other)))["status"]["token"]
    assert await users.answer(token, "GET", PODS) == "401 Unauthorized"


async def test_a_token_expires(users: Users) -> None:
    token = (await requested(users, expirationSeconds=600))["status"]["token"]
    await users.server.clock.sleep(700)
    assert await users.answer(token, "GET", PODS) == "401 Unauthorized"
    _, found = await users("admin", "POST", REVIEW, {"spec": {"token": token}})
    assert found["status"] == {"user": {}, "error": "[invalid bearer token, service account token has expired]"}


async def test_a_token_ends_with_its_account(users: Users) -> None:
    token = (await requested(users))["status"]["token"]
    users.server.delete(ACCOUNTS, "robot")
    assert await users.answer(token, "GET", PODS) == "401 Unauthorized"
    users.server.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}})
    assert await users.answer(token, "GET", PODS) == "401 Unauthorized"


async def test_a_token_ends_with_the_object_it_is_bound_to(users: Users) -> None:
    users.server.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    token = (await requested(users, boundObjectRef={"kind": "Secret", "apiVersion": "v1", "name": "s"}))["status"][
        "token"
    ]
    assert (await users.answer(token, "GET", PODS))[:3] == "403"
    users.server.delete(SECRETS, "s")
    assert await users.answer(token, "GET", PODS) == "401 Unauthorized"


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        ({"expirationSeconds": 5}, "Invalid value: 5: may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 1 << 33}, "may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}}, 'pods "p" not found'),
        (
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1"}},
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
    ],
)
async def test_a_token_request_is_checked(users: Users, spec: Obj, answer: str) -> None:
    assert (await users.answer("admin", "POST", f"{ACCOUNTS_PATH}/robot/token", {"spec": spec})).endswith(answer)


async def test_a_secret_gets_a_token_that_ends_with_it(users: Users) -> None:
    named = {"name": "t", "annotations": {"kubernetes.io/service-account.name": "robot"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": named, "type": "kubernetes.io/service-account-token"}
    assert (await users("admin", "POST", SECRETS_PATH, secret))[0] == 201
    stored = users.server.get(SECRETS, "t")
    assert stored is not None
    data = {name: base64.b64decode(text).decode() for name, text in stored["data"].items()}
    assert (data["ca.crt"], data["namespace"]) == ("PEM", "default")
    code, found = await users(data["token"], "POST", WHO, {})
    assert (code, found["status"]["userInfo"]["username"]) == (201, ROBOT)
    assert (await users("admin", "DELETE", f"{ACCOUNTS_PATH}/robot"))[0] == 200
    assert users.server.get(SECRETS, "t") is None
    assert await users.answer(data["token"], "POST", WHO, {}) == "401 Unauthorized"


async def test_a_review_of_a_token(users: Users) -> None:
    token = (await requested(users))["status"]["token"]
    _, found = await users("admin", "POST", REVIEW, {"spec": {"token": token}})
    status = found["status"]
    assert (status["authenticated"], status["audiences"]) == (True, [ISSUER])
    assert status["user"]["username"] == ROBOT
    _, found = await users("admin", "POST", REVIEW, {"spec": {"token": token, "audiences": ["x"]}})
    error = f'[invalid bearer token, token audiences ["{ISSUER}"] is invalid for the target audiences ["x"]]'
    assert found["status"] == {"user": {}, "error": error}
    assert await users.answer("admin", "POST", REVIEW, {"spec": {}}) == (
        "400 token is required for TokenReview in authentication"
    )


# -- impersonation


async def who(users: Users, token: str, **headers: str) -> Any:
    named = {f"Impersonate-{name.replace('_', '-')}": value for name, value in headers.items()}
    code, found = await users(token, "POST", WHO, {}, headers=named)
    return found["status"]["userInfo"] if code == 201 else f"{code} {found['message']}"


async def test_the_admin_impersonates_anyone(users: Users) -> None:
    assert await who(users, "admin", User="eve", Group="a,b", Extra_Some="x", Uid="7") == {
        "username": "eve",
        "uid": "7",
        "groups": ["a", "b", "system:authenticated"],
        "extra": {"some": ["x"]},
    }
    robots = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    assert await who(users, "admin", User=ROBOT) == {"username": ROBOT, "groups": robots}
    assert (await who(users, "admin", User="system:node:a"))["groups"] == ["system:nodes", "system:authenticated"]


async def test_an_impersonated_user_has_their_own_rights_alone(users: Users) -> None:
    refused = await users.answer("admin", "GET", PODS, headers={"Impersonate-User": "eve"})
    assert refused.startswith('403 pods is forbidden: User "eve" cannot list')


async def test_a_group_without_a_user_is_a_bad_request(users: Users) -> None:
    assert await who(users, "admin", Group="a", Extra_A="x", Uid="7") == (
        '400 requested &user.DefaultInfo{Name:"", UID:"7", Groups:[]string{"a"}, '
        'Extra:map[string][]string{"a":[]string{"x"}}} without impersonating a user name'
    )


@pytest.mark.parametrize(
    ("user", "mode"),
    [("eve", "user-info"), (ROBOT, "serviceaccount"), ("system:node:a", "arbitrary-node")],
)
async def test_a_refusal_is_that_of_the_first_mode(users: Users, user: str, mode: str) -> None:
    told = await users.answer("bob", "GET", PODS, headers={"Impersonate-User": user})
    asked = f'User "bob" cannot impersonate-on:{mode}:list resource "pods" in API group "" in the namespace "default"'
    assert told == f"403 pods is forbidden: {asked}"


async def test_the_verb_impersonate_is_enough(users: Users) -> None:
    users.server.create(cluster_role("actor", rule("impersonate", "users", names="eve")))
    users.server.create(bound("actor", "actor", "ClusterRole", namespace=""))
    assert (await who(users, "bob", User="eve"))["username"] == "eve"
    # After one success its mode comes first, and so does its refusal.
    refused = await who(users, "bob", User="carol")
    assert refused == (
        '403 users "carol" is forbidden: User "bob" cannot impersonate resource "users" in API group "" '
        "at the cluster scope"
    )


async def test_a_constrained_mode_needs_the_user_and_the_request(users: Users) -> None:
    authentication = "authentication.k8s.io"
    users.server.create(
        cluster_role(
            "actor",
            rule("impersonate:user-info", "users", groups=authentication, names="eve"),
            rule("impersonate-on:user-info:create", "selfsubjectreviews", groups=authentication),
        )
    )
    users.server.create(bound("actor", "actor", "ClusterRole", namespace=""))
    assert (await who(users, "bob", User="eve"))["username"] == "eve"
    told = await users.answer("bob", "GET", PODS, headers={"Impersonate-User": "eve"})
    assert "cannot impersonate-on:user-info:list" in told
