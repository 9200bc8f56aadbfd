"""Resource types and references to objects: all that a request path needs, without discovery."""

from __future__ import annotations

from typing import Final

from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.value import Value, replace


class Resource:
    """One resource type in one version. Equality ignores kind and scope, which follow from the rest.

    It is not a `Value`, because it is the key of very many lookups and caches its hash.
    """

    __slots__ = ("_hash", "group", "kind", "namespaced", "plural", "version")

    def __init__(self, group: str, version: str, plural: str, kind: str, namespaced: bool = True) -> None:
        self.group: Final = group
        self.version: Final = version
        self.plural: Final = plural
        self.kind: Final = kind
        self.namespaced: Final = namespaced
        self._hash: Final = hash((group, version, plural))

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if not isinstance(other, Resource):
            return NotImplemented
        return (self.plural, self.group, self.version) == (other.plural, other.group, other.version)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Resource({self.group!r}, {self.version!r}, {self.plural!r}, {self.kind!r}, {self.namespaced})"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """`deployments.apps`, `pods`, as in kubectl's output."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def root(self) -> str:
        """`/apis/apps/v1`, `/api/v1`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def ref(self, name: str, namespace: str = "") -> ObjectRef:
        return ObjectRef(self, name, namespace if self.namespaced else "")

    def __str__(self) -> str:
        return self.full_name


class ObjectRef(Value):
    """One object, or one subresource of it, by name."""

    resource: Resource
    name: str
    namespace: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    def sub(self, subresource: str) -> ObjectRef:
        return replace(self, subresource=subresource)

    def __str__(self) -> str:
        """`deployments.apps default/web/status`: for messages and logs."""
        tail = f"/{self.subresource}" if self.subresource else ""
        return f"{self.resource} {self.key}{tail}"


NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
SECRETS = Resource("", "v1", "secrets", "Secret")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
HPAS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
