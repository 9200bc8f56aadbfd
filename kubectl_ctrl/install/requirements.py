"""The objects that a controller needs in a cluster, in the order of their creation. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.install.kinds import CLUSTERROLES, ORDER, ROLES, SERVICEACCOUNTS, ref_of
from kubectl_ctrl.install.marks import labels
from kubectl_ctrl.install.parts import Parts
from kubectl_ctrl.model.objects import Obj, labels_of, name_of, namespace_of
from kubectl_ctrl.model.resources import LEASES, NAMESPACES

_RBAC = CLUSTERROLES.api_version


def system_namespace(controller: str) -> str:
    return f"{controller}-system"


def account(controller: str) -> str:
    """The name of its ServiceAccount, of its Lease, and of the role for that Lease."""
    return f"kubectl-ctrl-{controller}"


def needs(parts: Parts, namespace: str = "", *, crds: bool = True, rbac: bool = True) -> tuple[Obj, ...]:
    """All objects with our labels; `namespace` is that of the ServiceAccount, by default CONTROLLER-system."""
    space = namespace or system_namespace(parts.name)
    found: list[Obj] = list(parts.crds) if crds else []
    if rbac:
        found += _rights(parts, space)
    marks = labels(parts.name)
    marked = [{**obj, "metadata": {**obj["metadata"], "labels": {**labels_of(obj), **marks}}} for obj in found]
    rank = {(kind.api_version, kind.kind): place for place, kind in enumerate(ORDER)}
    marked.sort(key=lambda obj: rank[obj["apiVersion"], obj["kind"]])
    _check_distinct(marked, parts.name)
    return tuple(marked)


def _rights(parts: Parts, space: str) -> list[Obj]:
    name = account(parts.name)
    lease = {"apiVersion": _RBAC, "kind": ROLES.kind, "metadata": {"name": name, "namespace": space}}
    # A Role without a namespace is for the namespace of the account.
    roles = [
        {**role, "metadata": {**role["metadata"], "namespace": space}}
        if role["kind"] == ROLES.kind and not namespace_of(role)
        else role
        for role in parts.rbac
    ]
    roles.append({**lease, "rules": _lease_rules(name, alone=space == system_namespace(parts.name))})
    return [
        {"apiVersion": "v1", "kind": NAMESPACES.kind, "metadata": {"name": space}},
        {"apiVersion": "v1", "kind": SERVICEACCOUNTS.kind, "metadata": {"name": name, "namespace": space}},
        *roles,
        *(_binding(role, name, space) for role in roles),
    ]


def _lease_rules(lease: str, *, alone: bool) -> list[Obj]:
    """The rules for leader election: get, create and update the Lease.

    A run in one namespace has the namespace in the name of its Lease, so the rules name the Lease only if the namespace
    may contain Leases of others. RBAC cannot limit a create to a name.
    """
    group = [LEASES.group]
    if alone:
        return [{"apiGroups": group, "resources": [LEASES.plural], "verbs": ["get", "create", "update"]}]
    return [
        {"apiGroups": group, "resources": [LEASES.plural], "verbs": ["create"]},
        {"apiGroups": group, "resources": [LEASES.plural], "resourceNames": [lease], "verbs": ["get", "update"]},
    ]


def _binding(role: Obj, name: str, space: str) -> Obj:
    meta = {"name": name_of(role)}
    if role["kind"] == ROLES.kind:
        meta["namespace"] = namespace_of(role)
    return {
        "apiVersion": _RBAC,
        "kind": f"{role['kind']}Binding",
        "metadata": meta,
        "roleRef": {"apiGroup": CLUSTERROLES.group, "kind": role["kind"], "name": name_of(role)},
        "subjects": [{"kind": SERVICEACCOUNTS.kind, "name": name, "namespace": space}],
    }


def _check_distinct(objects: Sequence[Obj], controller: str) -> None:
    seen = set()
    for obj in objects:
        if (ref := ref_of(obj)) in seen:
            raise ControllerError(
                f"The rbac.yaml of controller {controller!r} has a {obj['kind']} {name_of(obj)!r}, a name that "
                "install uses itself.",
                next_step="rename it in rbac.yaml",
            )
        seen.add(ref)
