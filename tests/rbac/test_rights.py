from __future__ import annotations

from kubectl_ctrl.rbac.rights import Right, binding, least, rights_in, roles, rules

ALL = {
    Right("apps", "deployments", "get"),
    Right("apps", "deployments", "patch"),
    Right("apps", "statefulsets", "patch"),
    Right("apps", "statefulsets", "get"),
    Right("", "events", "create"),
    Right("coordination.k8s.io", "leases", "create", "default"),
    Right("coordination.k8s.io", "leases", "update", "default", "mine"),
    Right("coordination.k8s.io", "leases", "update", "default", "other"),
}


def test_few_rules_say_it() -> None:
    assert rules(right for right in ALL if not right.namespace) == [
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": ["get", "patch"]},
    ]
    assert rules(right for right in ALL if right.namespace) == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["mine", "other"],
            "verbs": ["update"],
        },
    ]


def test_roles_say_what_they_were_made_of() -> None:
    made = roles(ALL, "foo")
    assert [(role["kind"], role["metadata"]) for role in made] == [
        ("ClusterRole", {"name": "foo"}),
        ("Role", {"name": "foo", "namespace": "default"}),
    ]
    assert frozenset().union(*map(rights_in, made)) == ALL
    assert roles([], "foo") == []


def test_a_wider_right_makes_a_narrower_one_needless() -> None:
    wide = Right("", "pods", "get")
    place, name = Right("", "pods", "get", "default"), Right("", "pods", "get", "default", "web")
    other = Right("", "pods", "get", "", "db")
    assert least([wide, place, name, other]) == {wide}
    assert least([place, name, other]) == {place, other}
    assert least([name, other]) == {name, other}


def test_a_binding_is_to_an_account_or_to_a_user() -> None:
    [_, role] = roles(ALL, "foo")
    bound = binding(role, "system:serviceaccount:foo-system:foo")
    assert (bound["kind"], bound["metadata"]) == ("RoleBinding", {"name": "foo", "namespace": "default"})
    assert bound["subjects"] == [{"kind": "ServiceAccount", "name": "foo", "namespace": "foo-system"}]
    assert bound["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "foo"}
    assert binding(role, "jane")["subjects"][0] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "User",
        "name": "jane",
    }
