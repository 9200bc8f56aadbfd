"""The resource types that a controller's parts are made of, in the order in which they are made."""

from __future__ import annotations

from kubectl_ctrl.model.objects import Obj, name_of, namespace_of
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS, NAMESPACES, ObjectRef, Resource

_RBAC = "rbac.authorization.k8s.io"

SERVICEACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CLUSTERROLES = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
ROLES = Resource(_RBAC, "v1", "roles", "Role")
CLUSTERROLEBINDINGS = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
ROLEBINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")

# A binding needs its role, an account its namespace; what runs comes last.
ORDER = (
    CRDS,
    NAMESPACES,
    SERVICEACCOUNTS,
    CLUSTERROLES,
    ROLES,
    CLUSTERROLEBINDINGS,
    ROLEBINDINGS,
    DEPLOYMENTS,
)

_BY_KIND = {(resource.api_version, resource.kind): resource for resource in ORDER}


def ref_of(obj: Obj) -> ObjectRef:
    """Where an object of one of these types lives."""
    return _BY_KIND[obj["apiVersion"], obj["kind"]].ref(name_of(obj), namespace_of(obj))


def shown(ref: ObjectRef) -> str:
    """`clusterrole.rbac.authorization.k8s.io/kubectl-ctrl-foo`, as kubectl names what it did something to."""
    group = f".{ref.resource.group}" if ref.resource.group else ""
    return f"{ref.resource.kind.lower()}{group}/{ref.name}"
