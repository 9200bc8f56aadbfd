from __future__ import annotations

import pytest

from kubectl_ctrl.model.resources import NAMESPACES
from kubectl_ctrl.sandbox.controllers.resources import ACCOUNTS
from kubectl_ctrl.sandbox.controllers.serviceaccounts import RootCertificates, ServiceAccounts
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import CONFIGMAPS

_MAP = "kube-root-ca.crt"


@pytest.fixture(autouse=True)
async def controlled(server: ScriptedServer) -> None:
    access = server.access("kube-controller-manager")
    server.actors.start([ServiceAccounts(access), RootCertificates(access, "the certificate")], server.storage)
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})


async def test_each_namespace_has_both_old_and_new_ones(server: ScriptedServer) -> None:
    for space in ("default", "kube-system", "far"):
        assert server.get(ACCOUNTS, "default", space)
        assert present(server.get(CONFIGMAPS, _MAP, space))["data"] == {"ca.crt": "the certificate"}


async def test_they_come_back(server: ScriptedServer) -> None:
    server.delete(ACCOUNTS, "default", "far")
    server.delete(CONFIGMAPS, _MAP, "far")
    assert server.get(ACCOUNTS, "default", "far")
    assert server.get(CONFIGMAPS, _MAP, "far")


async def test_the_certificate_cannot_be_changed_but_the_account_can(server: ScriptedServer) -> None:
    server.change(CONFIGMAPS, _MAP, {"data": {"ca.crt": "forged", "more": "x"}}, namespace="far")
    assert present(server.get(CONFIGMAPS, _MAP, "far"))["data"] == {"ca.crt": "the certificate"}
    server.change(ACCOUNTS, "default", {"imagePullSecrets": [{"name": "s"}]}, namespace="far")
    assert present(server.get(ACCOUNTS, "default", "far"))["imagePullSecrets"] == [{"name": "s"}]


async def test_they_go_with_their_namespace(server: ScriptedServer) -> None:
    server.delete(NAMESPACES, "far")
    assert server.get(NAMESPACES, "far") is None
    assert server.get(ACCOUNTS, "default", "far") is None
