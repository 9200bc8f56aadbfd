"""The resource types of a controller's objects, in the order of their creation."""

from __future__ import annotations

from kubectl_ctrl.model.objects import Obj, name_of, namespace_of
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS, NAMESPACES, ObjectRef, Resource

_RBAC = "rbac.authorization.k8s.io"

SERVICEACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CLUSTERROLES = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
ROLES = Resource(_RBAC, "v1", "roles", "Role")
CLUSTERROLEBINDINGS = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
ROLEBINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")

# A binding needs its role, and a service account its namespace; Deployments need all of them.
ORDER = (CRDS, NAMESPACES, SERVICEACCOUNTS, CLUSTERROLES, ROLES, CLUSTERROLEBINDINGS, ROLEBINDINGS, DEPLOYMENTS)

_BY_KIND = {(resource.api_version, resource.kind): resource for resource in ORDER}


def ref_of(obj: Obj) -> ObjectRef:
    return _BY_KIND[obj["apiVersion"], obj["kind"]].ref(name_of(obj), namespace_of(obj))


def shown(ref: ObjectRef) -> str:
    """`clusterrole.rbac.authorization.k8s.io/kubectl-ctrl-foo`, the form of kubectl's output."""
    group = f".{ref.resource.group}" if ref.resource.group else ""
    return f"{ref.resource.kind.lower()}{group}/{ref.name}"
