from __future__ import annotations

import pytest

from kubectl_ctrl.client import requests
from kubectl_ctrl.client.options import (
    PLAIN_DELETE,
    PLAIN_WRITE,
    DeleteOptions,
    ListQuery,
    PatchKind,
    WatchQuery,
    WriteOptions,
)
from kubectl_ctrl.client.order import Body, Order, WhenLost
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.resources import DEPLOYMENTS, NAMESPACES, PODS
from tests.client.rig import CONFIGMAPS, configmap

REF = CONFIGMAPS.ref("one", "default")
ALL = WriteOptions(manager="me", dry_run=True)


def sent(order: Order) -> tuple[str, str, dict[str, str]]:
    return order.method, order.path, dict(order.query)


def test_get() -> None:
    assert sent(requests.get(REF)) == ("GET", "/api/v1/namespaces/default/configmaps/one", {})


@pytest.mark.parametrize(
    ("query", "token", "params"),
    [
        (ListQuery(), "", {"limit": "500"}),
        (ListQuery(limit=0), "", {}),
        (ListQuery(version="0"), "", {"limit": "500", "resourceVersion": "0"}),
        # A limit beside a version would mean that exact version.
        (ListQuery(version="7"), "", {"resourceVersion": "7"}),
        (ListQuery(labels="a=b", fields="c=d"), "", {"labelSelector": "a=b", "fieldSelector": "c=d", "limit": "500"}),
        # The token holds the version; naming one beside it is refused.
        (
            ListQuery(labels="a=b", version="0"),
            "t",
            {"labelSelector": "a=b", "limit": "500", "continue": "t"},
        ),
    ],
)
def test_list(query: ListQuery, token: str, params: dict[str, str]) -> None:
    assert sent(requests.list_page(CONFIGMAPS, query, token)) == ("GET", "/api/v1/configmaps", params)


def test_list_of_a_namespace_and_of_metadata() -> None:
    order = requests.list_page(CONFIGMAPS, ListQuery(namespace="x", metadata_only=True))
    assert order.path == "/api/v1/namespaces/x/configmaps"
    assert order.accept == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    assert order.timeout == 60.0
    assert order.resend
    assert not requests.list_page(CONFIGMAPS, ListQuery(), resend=False).resend


@pytest.mark.parametrize(
    ("query", "params"),
    [
        (WatchQuery(), {"watch": "true", "allowWatchBookmarks": "true"}),
        (
            WatchQuery(bookmarks=False, version="7", timeout=290.6),
            {
                "watch": "true",
                "resourceVersion": "7",
                "timeoutSeconds": "291",
            },
        ),
        (
            WatchQuery(initial_events=True, labels="a"),
            {
                "watch": "true",
                "allowWatchBookmarks": "true",
                "labelSelector": "a",
                "sendInitialEvents": "true",
                "resourceVersionMatch": "NotOlderThan",
            },
        ),
        (WatchQuery(timeout=0.1), {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "1"}),
    ],
)
def test_watch(query: WatchQuery, params: dict[str, str]) -> None:
    order = requests.watch(CONFIGMAPS, query)
    assert sent(order) == ("GET", "/api/v1/configmaps", params)
    assert order.verb == "watch"
    assert not order.resend


def test_watch_of_metadata() -> None:
    order = requests.watch(CONFIGMAPS, WatchQuery(metadata_only=True))
    assert order.accept == "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


def test_create() -> None:
    order = requests.create(CONFIGMAPS, configmap(), ALL)
    query = {"fieldManager": "me", "dryRun": "All"}
    assert sent(order) == ("POST", "/api/v1/namespaces/default/configmaps", query)
    assert order.target == "configmaps default/one"
    assert order.body == configmap()
    assert sent(requests.create(NAMESPACES, {"metadata": {"name": "n"}}, PLAIN_WRITE))[1] == "/api/v1/namespaces"


def test_create_fills_in_the_kind_that_the_path_stands_for() -> None:
    obj = {"metadata": {"name": "n", "namespace": "x"}}
    order = requests.create(DEPLOYMENTS, obj, PLAIN_WRITE)
    assert order.body == {"apiVersion": "apps/v1", "kind": "Deployment", **obj}
    assert "kind" not in obj


def test_create_in_a_subresource() -> None:
    eviction = {"metadata": {"name": "p"}}
    order = requests.create(PODS.ref("p", "x").sub("eviction"), eviction, PLAIN_WRITE)
    assert sent(order)[:2] == ("POST", "/api/v1/namespaces/x/pods/p/eviction")
    assert order.body is eviction


def test_create_needs_a_namespace_and_a_name() -> None:
    with pytest.raises(UsageError, match="no namespace"):
        requests.create(CONFIGMAPS, {"metadata": {"name": "one"}}, PLAIN_WRITE)
    with pytest.raises(UsageError, match="cannot be a name"):
        requests.create(CONFIGMAPS, {"metadata": {"namespace": "x"}}, PLAIN_WRITE)


def test_replace() -> None:
    obj = configmap()
    obj["metadata"]["resourceVersion"] = "7"
    order = requests.replace(REF, obj, ALL)
    assert order.method == "PUT"
    assert order.verb == "update"
    assert order.old_version == "7"
    assert requests.replace(REF, configmap(), WriteOptions(old_version="6")).old_version == "6"


@pytest.mark.parametrize("kind", [PatchKind.JSON, PatchKind.MERGE, PatchKind.STRATEGIC])
def test_patch(kind: PatchKind) -> None:
    order = requests.patch(REF.sub("status"), {"a": 1}, kind, PLAIN_WRITE)
    assert sent(order) == ("PATCH", "/api/v1/namespaces/default/configmaps/one/status", {})
    assert order.content_type == kind.value
    assert order.verb == "patch"


def test_apply() -> None:
    order = requests.patch(REF, {"metadata": {"name": "one"}}, PatchKind.APPLY, WriteOptions(manager="me", force=True))
    assert dict(order.query) == {"fieldManager": "me", "force": "true"}
    assert order.content_type == "application/apply-patch+yaml"
    assert order.verb == "apply"
    assert order.body == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    with pytest.raises(UsageError, match="field manager"):
        requests.patch(REF, {}, PatchKind.APPLY, PLAIN_WRITE)
    with pytest.raises(UsageError, match="not a list"):
        requests.patch(REF, [], PatchKind.APPLY, WriteOptions(manager="me"))


def test_delete() -> None:
    assert requests.delete(REF, PLAIN_DELETE).body == {"kind": "DeleteOptions", "apiVersion": "v1"}
    options = DeleteOptions(propagation="Foreground", uid="u", version="7", dry_run=True)
    assert requests.delete(REF, options).body == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "dryRun": ["All"],
    }


def test_raw() -> None:
    order = requests.raw("GET", "/version", (("a", "b"),), "text/plain", None)
    assert sent(order) == ("GET", "/version", {"a": "b"})
    assert (order.verb, order.name, order.accept) == ("get", "/version", "text/plain")
    with pytest.raises(UsageError, match="slash"):
        requests.raw("GET", "version", (), "", None)
    with pytest.raises(UsageError, match="'CONNECT' is not a method"):
        requests.raw("CONNECT", "/version", (), "", None)


VERSIONED: Body = {"metadata": {"resourceVersion": "7"}}
TESTED: Body = [{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}]
PINNED: Body = [{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}]


@pytest.mark.parametrize(
    ("order", "when_lost"),
    [
        (requests.get(REF), WhenLost.REPEAT),
        (requests.create(CONFIGMAPS, configmap(), PLAIN_WRITE), WhenLost.READ),
        (requests.create(CONFIGMAPS, configmap(), ALL), WhenLost.REPEAT),
        (requests.create(PODS.ref("p", "x").sub("eviction"), {"metadata": {}}, PLAIN_WRITE), WhenLost.UNKNOWN),
        (requests.create(PODS.ref("p", "x").sub("eviction"), {"metadata": {}}, ALL), WhenLost.REPEAT),
        (requests.replace(REF, {"metadata": {"resourceVersion": "7"}}, PLAIN_WRITE), WhenLost.READ),
        (requests.replace(REF, {"metadata": {}}, PLAIN_WRITE), WhenLost.UNKNOWN),
        (requests.replace(REF, {"metadata": {}}, ALL), WhenLost.REPEAT),
        (requests.patch(REF, VERSIONED, PatchKind.MERGE, PLAIN_WRITE), WhenLost.READ),
        (requests.patch(REF, TESTED, PatchKind.JSON, PLAIN_WRITE), WhenLost.READ),
        (requests.patch(REF, PINNED, PatchKind.JSON, PLAIN_WRITE), WhenLost.READ),
        (requests.patch(REF, {"metadata": None}, PatchKind.MERGE, PLAIN_WRITE), WhenLost.UNKNOWN),
        (requests.patch(REF, {"metadata": {"uid": "u"}}, PatchKind.MERGE, PLAIN_WRITE), WhenLost.REPEAT),
        (requests.patch(REF, [], PatchKind.JSON, PLAIN_WRITE), WhenLost.UNKNOWN),
        (requests.patch(REF, {}, PatchKind.MERGE, WriteOptions(old_version="7")), WhenLost.UNKNOWN),
        (requests.patch(REF, {}, PatchKind.APPLY, WriteOptions(manager="me")), WhenLost.REPEAT),
        (requests.delete(REF, DeleteOptions(uid="u")), WhenLost.REPEAT),
        (requests.delete(REF, DeleteOptions(version="7")), WhenLost.UNKNOWN),
        (requests.delete(REF, PLAIN_DELETE), WhenLost.UNKNOWN),
        (requests.delete(REF, DeleteOptions(dry_run=True)), WhenLost.REPEAT),
        (requests.raw("GET", "/", (), "", None), WhenLost.REPEAT),
        (requests.raw("POST", "/", (), "", {}), WhenLost.UNKNOWN),
    ],
)
def test_how_each_verb_may_be_repeated(order: Order, when_lost: WhenLost) -> None:
    assert order.when_lost is when_lost


def test_a_lost_write_is_looked_up_where_reading_is_allowed() -> None:
    created = requests.read_back(requests.create(CONFIGMAPS, configmap(), PLAIN_WRITE))
    assert sent(created)[:2] == ("GET", "/api/v1/namespaces/default/configmaps/one")
    deployment = DEPLOYMENTS.ref("d", "x")
    for subresource, path in (("status", "d"), ("scale", "d/scale"), ("", "d")):
        order = requests.patch(deployment.sub(subresource), VERSIONED, PatchKind.MERGE, PLAIN_WRITE)
        assert requests.read_back(order).path == f"/apis/apps/v1/namespaces/x/deployments/{path}"
