"""Roles and their bindings.

| kind | checked |
|---|---|
| Role, ClusterRole | verbs, groups and resources of each rule; paths in a ClusterRole alone |
| RoleBinding, ClusterRoleBinding | the role, which never changes, and the subjects |
"""

from __future__ import annotations

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox.kinds.checks.words import (
    Found,
    invalid,
    path_segment,
    required,
    selector,
    subdomain,
    texts,
    unsupported,
)

_GROUP = "rbac.authorization.k8s.io"


def role(obj: Obj, _old: Obj | None) -> Found:
    for place, rule in enumerate(obj.get("rules") or ()):
        yield from _rule(f"rules[{place}]", rule, namespaced=obj["kind"] == "Role")
    aggregation = obj.get("aggregationRule")
    if aggregation is None:
        return
    path = "aggregationRule.clusterRoleSelectors"
    if not aggregation.get("clusterRoleSelectors"):
        yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for place, one in enumerate(aggregation.get("clusterRoleSelectors") or ()):
        yield from selector(f"{path}[{place}]", one)


def _rule(path: str, rule: Obj, *, namespaced: bool) -> Found:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if namespaced:
            yield invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            words = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{path}.nonResourceURLs", urls, words)
        return
    if not rule.get("apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def binding(obj: Obj, old: Obj | None) -> Found:
    namespaced = obj["kind"] == "RoleBinding"
    ref = obj.get("roleRef") or {}
    if ref.get("apiGroup") != _GROUP:
        yield unsupported("roleRef.apiGroup", ref.get("apiGroup"), _GROUP)
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if ref.get("kind") not in kinds:
        yield unsupported("roleRef.kind", ref.get("kind") or "", *kinds)
    if ref.get("name"):
        yield from texts("roleRef.name", ref["name"], path_segment)
    else:
        yield required("roleRef.name")
    for place, one in enumerate(obj.get("subjects") or ()):
        yield from _subject(f"subjects[{place}]", one, namespaced=namespaced)
    if old is not None and not same(ref, old.get("roleRef")):
        shown = {name[0].upper() + name[1:]: ref.get(name) or "" for name in ("kind", "name")}
        yield invalid("roleRef", {"APIGroup": ref.get("apiGroup"), **shown}, "cannot change roleRef")


def _subject(path: str, one: Obj, *, namespaced: bool) -> Found:
    kind, name, group = one.get("kind"), one.get("name"), one.get("apiGroup") or ""
    if not name:
        yield required(f"{path}.name")
    if kind == "ServiceAccount":
        if name:
            yield from texts(f"{path}.name", name, subdomain)
        if group:
            yield unsupported(f"{path}.apiGroup", group, "")
        if not namespaced and not one.get("namespace"):
            yield required(f"{path}.namespace")
    elif kind not in ("User", "Group"):
        yield unsupported(f"{path}.kind", kind, "ServiceAccount", "User", "Group")
    elif group != _GROUP:
        yield unsupported(f"{path}.apiGroup", group, _GROUP)
