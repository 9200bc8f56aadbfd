"""Rights as YAML that kubectl takes, and as tables; compared whole."""

from __future__ import annotations

import yaml

from kubectl_ctrl.rbac.rights import ControllerRights, RefusedRight, Right, rights_in, roles
from kubectl_ctrl.render.rights import as_table, as_yaml, missing_objects, missing_table
from kubectl_ctrl.value import replace

SA = "system:serviceaccount:foo-system:kubectl-ctrl-foo"
PATCH = Right("apps", "deployments", "patch", "default")
LIST = Right("apps", "deployments", "list")
ACCOUNT = ControllerRights(
    controller="foo",
    used=frozenset({PATCH, LIST}),
    refusals=(RefusedRight(right=PATCH, user=SA, at=0.0, count=3), RefusedRight(right=LIST, user="jane", at=0.0)),
    missing={SA: frozenset({PATCH, Right("", "events", "create", "default")}), "jane": frozenset({LIST})},
)


def test_roles_as_yaml() -> None:
    assert as_yaml(roles([PATCH, LIST], "kubectl-ctrl-foo"), ["by hand"]) == (
        "# by hand\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: ClusterRole\n"
        "metadata:\n"
        "  name: kubectl-ctrl-foo\n"
        "rules:\n"
        "- apiGroups: [apps]\n"
        "  resources: [deployments]\n"
        "  verbs: [list]\n"
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: Role\n"
        "metadata:\n"
        "  name: kubectl-ctrl-foo\n"
        "  namespace: default\n"
        "rules:\n"
        "- apiGroups: [apps]\n"
        "  resources: [deployments]\n"
        "  verbs: [patch]"
    )


def test_missing_rights_are_bound_to_the_users_who_lack_them() -> None:
    objects = list(yaml.safe_load_all(as_yaml(missing_objects(ACCOUNT, "kubectl-ctrl-foo", {"a": "b"}))))
    assert [obj["kind"] for obj in objects] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    wide, wide_binding, role, binding = objects
    assert [rights_in(wide), rights_in(role)] == [frozenset({LIST}), ACCOUNT.missing[SA]]
    assert wide_binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "kubectl-ctrl-foo", "namespace": "foo-system"}]
    for one, bound in ((wide, wide_binding), (role, binding)):
        assert bound["roleRef"]["name"] == one["metadata"]["name"] == bound["metadata"]["name"]
        assert one["metadata"]["labels"] == {"a": "b"}


def test_other_rights_are_another_role_so_that_apply_removes_none() -> None:
    def name(missing: dict[str, frozenset[Right]]) -> str:
        return str(missing_objects(replace(ACCOUNT, missing=missing), "foo", {})[0]["metadata"]["name"])

    one, other = {SA: frozenset({PATCH})}, {SA: frozenset({PATCH, replace(PATCH, verb="get")})}
    assert name(one) == name(one)
    assert len({name(one), name(other), name({"jane": one[SA]})}) == 3


def test_tables() -> None:
    assert as_table([LIST, PATCH, replace(PATCH, verb="get"), Right("", "pods", "get", "", "x\x1b")]) == (
        "RESOURCE           NAMESPACE   NAME    VERBS\n"
        "pods               *           x\\x1b   get\n"
        "deployments.apps   *           *       list\n"
        "deployments.apps   default     *       get,patch"
    )
    pad = " " * (len(SA) - len("jane"))
    assert missing_table(ACCOUNT) == (
        f"WHO {pad}   VERB     RESOURCE           NAMESPACE   WHY\n"
        f"jane{pad}   list     deployments.apps   *           denied once\n"
        f"{SA}   create   events             default     used, but not in rbac.yaml\n"
        f"{SA}   patch    deployments.apps   default     denied 3 times"
    )
