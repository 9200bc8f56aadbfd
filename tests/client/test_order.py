from __future__ import annotations

import pytest

from kubectl_ctrl.client.order import collection_path, object_path
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.resources import DEPLOYMENTS, NAMESPACES, PODS, SECRETS, ObjectRef, Resource
from tests.client.rig import an_order

ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        (PODS.ref("p", "default"), "/api/v1/namespaces/default/pods/p"),
        (PODS.ref("p", "default").sub("status"), "/api/v1/namespaces/default/pods/p/status"),
        (DEPLOYMENTS.ref("d", "x").sub("scale"), "/apis/apps/v1/namespaces/x/deployments/d/scale"),
        (NAMESPACES.ref("default"), "/api/v1/namespaces/default"),
        (ObjectRef(NAMESPACES, "default", "stray"), "/api/v1/namespaces/default"),
        (ROLES.ref("system:node"), "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"),
        (PODS.ref("a?b#c d", "default"), "/api/v1/namespaces/default/pods/a%3Fb%23c%20d"),
    ],
)
def test_object_path(ref: ObjectRef, path: str) -> None:
    assert object_path(ref) == path


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_a_name_that_would_reach_something_else_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a name"):
        object_path(PODS.ref(name, "default"))


@pytest.mark.parametrize("namespace", [".", "..", "a/b", "a%2fb"])
def test_so_is_such_a_namespace(namespace: str) -> None:
    with pytest.raises(UsageError, match="cannot be a namespace"):
        collection_path(PODS, namespace)


@pytest.mark.parametrize("subresource", ["..", "status/..", "a%2fb"])
def test_and_such_a_subresource(subresource: str) -> None:
    with pytest.raises(UsageError, match="cannot be a subresource"):
        object_path(PODS.ref("p", "default").sub(subresource))


def test_an_object_of_a_namespace_needs_one() -> None:
    with pytest.raises(UsageError, match="Pod 'p' has no namespace"):
        object_path(PODS.ref("p"))


def test_collection_path() -> None:
    assert collection_path(PODS, "") == "/api/v1/pods"
    assert collection_path(PODS, "x") == "/api/v1/namespaces/x/pods"
    assert collection_path(ROLES, "x") == "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def test_targets_read_well() -> None:
    assert an_order().target == "configmaps default/one"
    assert an_order(subresource="status").target == "configmaps default/one/status"
    assert an_order(name="").target == "configmaps in namespace 'default'"
    assert an_order(name="", namespace="").target == "configmaps in all namespaces"
    assert an_order(resource=NAMESPACES, name="", namespace="").target == "namespaces"
    assert an_order(resource=None, path="/version").target == "/version"


@pytest.mark.parametrize(
    ("path", "sensitive"),
    [
        ("/api/v1/namespaces/x/secrets/s", True),
        ("/api/v1/namespaces/x/serviceaccounts/s/token", True),
        ("/apis/example.com/v1/namespaces/x/SealedSecrets", True),
        ("/apis/example.com/v1/credentials", True),
        ("/api/v1/namespaces/x/pods/p", False),
    ],
)
def test_what_may_hold_credentials(path: str, sensitive: bool) -> None:
    assert an_order(path=path).sensitive is sensitive
    assert SECRETS.plural == "secrets"


def test_a_dry_run_writes_nothing() -> None:
    assert an_order(verb="apply").write
    assert not an_order(verb="apply", dry_run=True).write
    assert not an_order(verb="list").write
