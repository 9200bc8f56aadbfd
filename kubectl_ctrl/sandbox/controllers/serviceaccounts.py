"""What each namespace has from its start: the ServiceAccount `default`, and the certificate of the API server."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl.model.objects import Key, Obj, is_deleting
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import CONFIGMAPS, NAMESPACES, Resource
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess, Controller
from kubectl_ctrl.sandbox.controllers.resources import ACCOUNTS
from kubectl_ctrl.sandbox.storage import StoredChange

_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class NamespaceContent(Controller):
    """Keeps one object in each namespace, with its data."""

    resource: Resource
    name: str

    def content(self) -> Obj:
        """Everything but kind, name and namespace."""
        raise NotImplementedError

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table == NAMESPACES.full_name and change.new is not None:
            yield change.key
        elif table == self.resource.full_name and change.key.name == self.name:
            yield Key("", change.key.namespace)

    def sync(self, key: Key) -> float | None:
        namespace = self.cluster.get(NAMESPACES, key)
        if namespace is None or is_deleting(namespace):
            return None
        content = self.content()
        found = self.cluster.get(self.resource, Key(key.name, self.name))
        if found is None:
            metadata = {**content.get("metadata", {}), "name": self.name, "namespace": key.name}
            head = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
            self.cluster.create({**head, **content, "metadata": metadata})
        elif "data" in content and not same(found.get("data"), content["data"]) and not is_deleting(found):
            self.cluster.merge(self.resource, found, {**content, "data": _replaced(found.get("data"), content["data"])})
        return None


def _replaced(before: Obj | None, after: Obj) -> Obj:
    return {**dict.fromkeys(before or ()), **after}


class ServiceAccounts(NamespaceContent):
    resource = ACCOUNTS
    name = "default"

    def content(self) -> Obj:
        return {}


class RootCertificates(NamespaceContent):
    """The ConfigMap with which pods verify the API server."""

    resource = CONFIGMAPS
    name = "kube-root-ca.crt"

    def __init__(self, cluster: ClusterAccess, certificate: str) -> None:
        super().__init__(cluster)
        self._certificate = certificate

    def content(self) -> Obj:
        annotations = {"kubernetes.io/description": _DESCRIPTION}
        return {"metadata": {"annotations": annotations}, "data": {"ca.crt": self._certificate}}
