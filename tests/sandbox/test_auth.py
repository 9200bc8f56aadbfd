"""Authentication, impersonation and authorization of requests."""

from __future__ import annotations

import pytest

from kubectl_ctrl.sandbox.auth.bootstrap import bootstrap
from kubectl_ctrl.sandbox.auth.tokens import Authenticator
from kubectl_ctrl.sandbox.auth.users import User
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import MAPS_PATH, Caller, configmap
from tests.sandbox.users import Users

PODS = "/api/v1/namespaces/default/pods"
IN_X = 'in the namespace "x"'
SPACE_X = "/api/v1/namespaces/x"
SCALE_X = "/apis/apps/v1/namespaces/x/deployments/x/scale"
BOB = User(name="bob", groups=("devs",))


@pytest.fixture
async def users() -> Users:
    auth = Authenticator(key=b"k", admin_token="admin", tokens={"bob": BOB, "eve": User(name="eve")})
    return Users(ScriptedServer(FakeClock(), auth))


@pytest.fixture
async def cluster(users: Users) -> Users:
    bootstrap(users.server)
    return users


# -- who asks


async def test_a_wrong_token_is_unauthorized(users: Users) -> None:
    assert await users("wrong", "GET", PODS) == (
        401,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        },
    )


async def test_a_request_without_a_token_is_anonymous(users: Users) -> None:
    assert await users("", "GET", PODS) == (
        403,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the '
            'namespace "default"',
            "reason": "Forbidden",
            "details": {"kind": "pods"},
            "code": 403,
        },
    )


async def test_a_server_may_refuse_anonymous_requests() -> None:
    server = ScriptedServer(FakeClock(), Authenticator(key=b"k", anonymous=False))
    assert (await Caller(server)("GET", PODS))[0] == 401


async def test_the_admin_may_do_everything(users: Users) -> None:
    assert await users.answer("admin", "POST", MAPS_PATH, configmap("a")) == "201"
    assert await users.answer("admin", "GET", f"{MAPS_PATH}/a") == "200"


async def test_a_refused_request_does_nothing(users: Users) -> None:
    assert (await users.answer("bob", "POST", MAPS_PATH, configmap("a"))).startswith("403 ")
    assert users.server.writes == []


async def test_other_schemes_are_anonymous(users: Users) -> None:
    code, found = await users("", "GET", PODS, headers={"Authorization": "Basic admin"})
    assert (code, "system:anonymous" in found["message"]) == (403, True)


async def test_without_an_authenticator_everything_is_allowed() -> None:
    assert (await Caller(ScriptedServer(FakeClock()))("GET", PODS))[0] == 200


# -- whether they may: the words


DEFAULT = 'in the namespace "default"'


@pytest.mark.parametrize(
    ("method", "path", "resource", "asked", "place"),
    [
        ("GET", f"{PODS}/x", 'pods "x"', 'get resource "pods" in API group ""', DEFAULT),
        ("GET", f"{PODS}/x/log", 'pods "x"', 'get resource "pods/log" in API group ""', DEFAULT),
        ("POST", PODS, "pods", 'create resource "pods" in API group ""', DEFAULT),
        ("PUT", f"{PODS}/x/status", 'pods "x"', 'update resource "pods/status" in API group ""', DEFAULT),
        ("PATCH", f"{PODS}/x", 'pods "x"', 'patch resource "pods" in API group ""', DEFAULT),
        ("DELETE", f"{PODS}/x", 'pods "x"', 'delete resource "pods" in API group ""', DEFAULT),
        ("DELETE", PODS, "pods", 'deletecollection resource "pods" in API group ""', DEFAULT),
        ("OPTIONS", PODS, "pods", ' resource "pods" in API group ""', DEFAULT),
        ("GET", "/api/v1/pods", "pods", 'list resource "pods" in API group ""', "at the cluster scope"),
        ("GET", "/api/v1/namespaces/x", 'namespaces "x"', 'get resource "namespaces" in API group ""', IN_X),
        ("PUT", f"{SPACE_X}/finalize", 'namespaces "x"', 'update resource "namespaces/finalize" in API group ""', IN_X),
        ("GET", "/apis/a.b/v1/cs", "cs.a.b", 'list resource "cs" in API group "a.b"', "at the cluster scope"),
        ("PATCH", SCALE_X, 'deployments.apps "x"', 'patch resource "deployments/scale" in API group "apps"', IN_X),
    ],
)
async def test_a_refusal_names_what_was_asked(
    users: Users, method: str, path: str, resource: str, asked: str, place: str
) -> None:
    words = f'403 {resource} is forbidden: User "bob" cannot {asked} {place}'
    assert await users.answer("bob", method, path) == words


@pytest.mark.parametrize("path", ["/foo/x%2Fy", "/apis/apps/v1", "/api"])
async def test_a_refusal_of_a_path_names_it(users: Users, path: str) -> None:
    shown = path.replace("%2F", "/")
    assert await users.answer("bob", "GET", path) == f'403 forbidden: User "bob" cannot get path "{shown}"'
