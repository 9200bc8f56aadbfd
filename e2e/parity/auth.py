"""Who asks, for whom, and whether they may: refusals, roles, escalation, impersonation, tokens and reviews."""

from __future__ import annotations

from typing import Any

from e2e.parity.asks import (
    ACCOUNTS,
    DEPLOYMENTS,
    FOOS,
    MAPS,
    PODS,
    SECRETS,
    Ask,
    Scenario,
    as_user,
    config_map,
    delete,
    get,
    patch,
    post,
    put,
    scenario,
    settled,
    watch,
    with_token,
)

RBAC = "rbac.authorization.k8s.io"
_ROLES = f"/apis/{RBAC}/v1/namespaces/{{ns}}/roles"
_BINDINGS = f"/apis/{RBAC}/v1/namespaces/{{ns}}/rolebindings"
_CLUSTER_ROLES = f"/apis/{RBAC}/v1/clusterroles"
_CLUSTER_BINDINGS = f"/apis/{RBAC}/v1/clusterrolebindings"
_ACCESS = "/apis/authorization.k8s.io/v1"
_SELF = f"{_ACCESS}/selfsubjectaccessreviews"
_SUBJECT = f"{_ACCESS}/subjectaccessreviews"
_LOCAL = f"{_ACCESS}/namespaces/{{ns}}/localsubjectaccessreviews"
_RULES = f"{_ACCESS}/selfsubjectrulesreviews"
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
_BOB = "bob-{ns}"  # not the bob of another scenario: some bindings are those of the whole cluster
_ROBOT = "system:serviceaccount:{ns}:robot"


def _guarded(name: str, *asks: Ask) -> Scenario:
    return scenario(f"auth: {name}", *asks, guarded=True)


def _rule(verbs: str, resources: str, *, groups: str = "", names: str = "") -> dict[str, Any]:
    listed = {"verbs": verbs.split(), "apiGroups": groups.split() or [""], "resources": resources.split()}
    return {**listed, **({"resourceNames": names.split()} if names else {})}


def _role(*rules: dict[str, Any], name: str = "some") -> dict[str, Any]:
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def _cluster_role(name: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    meta = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": meta, "rules": list(rules), **more}


def _binding(
    to: str, kind: str = "Role", *, of: str = _BOB, name: str = "some", cluster: bool = False
) -> dict[str, Any]:
    what = "ClusterRoleBinding" if cluster else "RoleBinding"
    subject = {"kind": "User", "name": of, "apiGroup": RBAC}
    if of == _ROBOT:
        subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "{ns}"}
    ref = {"apiGroup": RBAC, "kind": kind, "name": to}
    return {"apiVersion": f"{RBAC}/v1", "kind": what, "metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}


def _may(verb: str, resource: str, **more: str) -> dict[str, Any]:
    return {"spec": {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": "{ns}", **more}}}


def _given(*rules: dict[str, Any], of: str = _BOB) -> tuple[Ask, ...]:
    """A role for a user; the last request waits until the authorizer knows it."""
    known = _may(rules[0]["verbs"][0], rules[0]["resources"][0], group=rules[0]["apiGroups"][0])
    known["spec"]["resourceAttributes"]["name"] = rules[0].get("resourceNames", [""])[0]
    return (
        post(_ROLES, _role(*rules)),
        post(_BINDINGS, _binding("some", of=of)),
        settled(as_user(of, post(_SELF, known))),
    )


_REFUSED = {
    "get": get(f"{PODS}/x"),
    "list": get(PODS),
    "list of all namespaces": get("/api/v1/pods"),
    "watch": watch(PODS, "x"),
    "list of one name": get(PODS, fieldSelector="metadata.name=x"),
    "list of all but one name": get(PODS, fieldSelector="metadata.name!=x"),
    "list of an odd name": get(PODS, fieldSelector="metadata.name=a/b"),
    "create": post(MAPS, config_map("a")),
    "create from nonsense": Ask(method="POST", path=MAPS, body="nonsense"),
    "update": put(f"{MAPS}/a", config_map("a")),
    "update of a status": put(f"{DEPLOYMENTS}/a/status", {}),
    "patch": patch(f"{DEPLOYMENTS}/a", {}),
    "patch of a scale": patch(f"{DEPLOYMENTS}/a/scale", {}),
    "delete": delete(f"{MAPS}/a"),
    "delete of all": delete(MAPS),
    "logs": get(f"{PODS}/x/log"),
    "a namespace": get("/api/v1/namespaces/{ns}"),
    "all namespaces": get("/api/v1/namespaces"),
    "a namespace's end": put("/api/v1/namespaces/{ns}/finalize", {}),
    "a custom resource": get(f"{FOOS}/a"),
    "an unknown resource": get("/apis/nowhere.example.com/v1/things/a"),
    "an unknown path": get("/nowhere/at/all"),
    "another method": Ask(method="OPTIONS", path=PODS),
    "metrics": get("/metrics"),
}
_RULES_OF_BOB = (
    _rule("get list", "configmaps"),
    _rule("get", "secrets", names="a b"),
    _rule("*", "deployments", groups="apps"),
    _rule("update", "*/scale", groups="*"),
    _rule("get", "pods/log"),
    _rule("create", "*", groups="batch"),
)
_QUESTIONS = {
    "a held verb": _may("list", "configmaps"),
    "another verb": _may("watch", "configmaps"),
    "another namespace": _may("get", "configmaps", namespace="default"),
    "all namespaces": _may("get", "configmaps", namespace=""),
    "another group": _may("get", "configmaps", group="apps"),
    "a held name": _may("get", "secrets", name="b"),
    "another name": _may("get", "secrets", name="c"),
    "no name": _may("get", "secrets"),
    "any verb of a resource": _may("deletecollection", "deployments", group="apps"),
    "its subresource": _may("get", "deployments", group="apps", subresource="status"),
    "a scale of anything": _may("update", "foos", group="example.com", subresource="scale"),
    "a held subresource": _may("get", "pods", subresource="log"),
    "without its subresource": _may("get", "pods"),
    "any resource of a group": _may("create", "jobs", group="batch", version="v1"),
    "any subresource of a group": _may("create", "jobs", group="batch", subresource="status"),
    "everything": _may("*", "*", group="*"),
}
_HELD = (
    *_given(_rule("get list create update patch delete", "roles rolebindings", groups=RBAC), _rule("get", "pods")),
)
_MAKER = _rule("get list create update patch delete", "roles rolebindings", groups=RBAC)
_NEW = f"{_ROLES}/new"


def _as_bob(ask: Ask) -> Ask:
    return as_user(_BOB, ask)


_ESCALATIONS = {
    "a role with held rights": (_as_bob(post(_ROLES, _role(_rule("get", "pods"), name="new"))),),
    "a role with more": (
        _as_bob(
            post(
                _ROLES, _role(_rule("get delete", "pods secrets", groups="apps"), _rule("get list", "pods"), name="new")
            )
        ),
    ),
    "a role with names": (_as_bob(post(_ROLES, _role(_rule("get list", "secrets", names="a b"), name="new"))),),
    "a role with a held name": (_as_bob(post(_ROLES, _role(_rule("get", "pods", names="a"), name="new"))),),
    "a role with everything": (_as_bob(post(_ROLES, _role(_rule("*", "*", groups="*"), name="new"))),),
    "a change to more": (
        post(_ROLES, _role(_rule("get", "pods"), name="new")),
        _as_bob(patch(_NEW, {"rules": [_rule("get", "secrets")]})),
        _as_bob(patch(_NEW, {"metadata": {"labels": {"a": "b"}}})),
        _as_bob(put(_NEW, _role(_rule("list", "pods"), name="new"))),
    ),
    "a change of a role with more": (
        post(_ROLES, _role(_rule("get", "secrets"), name="new")),
        _as_bob(patch(_NEW, {"metadata": {"labels": {"a": "b"}}})),
        _as_bob(patch(_NEW, {"metadata": {"finalizers": ["example.com/a"]}})),
        _as_bob(patch(_NEW, {"metadata": {"finalizers": None}})),
        _as_bob(delete(_NEW)),
    ),
    "a binding of a held role": (_as_bob(post(_BINDINGS, _binding("some", name="new", of="eve"))),),
    "a binding of another role": (
        post(_ROLES, _role(_rule("get", "secrets"), _rule("list", "pods"), name="other")),
        _as_bob(post(_BINDINGS, _binding("other", name="new"))),
    ),
    "a binding of a missing role": (_as_bob(post(_BINDINGS, _binding("nothing", name="new"))),),
    "a binding of a missing cluster role": (
        _as_bob(post(_BINDINGS, _binding("nothing-{ns}", "ClusterRole", name="new"))),
    ),
    "a binding of view": (_as_bob(post(_BINDINGS, _binding("system:basic-user", "ClusterRole", name="new"))),),
    "a binding of the admin role": (_as_bob(post(_BINDINGS, _binding("cluster-admin", "ClusterRole", name="new"))),),
    "a cluster role": (_as_bob(post(_CLUSTER_ROLES, _cluster_role("new-{ns}", _rule("get", "pods")))),),
}
_MISSING = (
    *_HELD,
    post(_BINDINGS, _binding("nothing", name="dangling")),
    settled(_as_bob(post(_SELF, _may("get", "secrets")))),
)
_ROBOTS = (
    post(ACCOUNTS, {"metadata": {"name": "robot", "labels": {"is": "robot"}}}),
    post(f"{ACCOUNTS}/robot/token", {}),
)
_TOKEN = "$1.status.token"
_IMPERSONATOR = (
    *_ROBOTS,
    post(
        _CLUSTER_ROLES,
        _cluster_role("{ns}", _rule("impersonate", "users", names="bob"), _rule("impersonate", "groups", names="devs")),
    ),
    post(_CLUSTER_BINDINGS, _binding("{ns}", "ClusterRole", of=_ROBOT, name="{ns}", cluster=True)),
    settled(as_user(_ROBOT, post(_SELF, _may("impersonate", "users", namespace="", name="bob")))),
)


def _robot(ask: Ask, user: str = "", groups: str = "") -> Ask:
    return with_token(_TOKEN, as_user(user, ask, groups=groups))


_IMPERSONATIONS = {
    "nobody": _robot(post(_WHO, {})),
    "a user": _robot(post(_WHO, {}), "bob"),
    "a user and a group": _robot(post(_WHO, {}), "bob", "devs"),
    "another user": _robot(get(PODS), "alice"),
    "another group": _robot(get(PODS), "bob", "masters"),
    "the masters": _robot(get(PODS), "bob", "system:masters"),
    "a ServiceAccount": _robot(get(PODS), "system:serviceaccount:a:b"),
    "a ServiceAccount with a group": _robot(get(PODS), "system:serviceaccount:a:b", "devs"),
    "a node": _robot(get(PODS), "system:node:a"),
    "a group alone": _robot(get(PODS), "", "devs"),
}
_REQUESTS = {
    "plain": {},
    "for a time": {"spec": {"expirationSeconds": 7200, "audiences": ["a", "b"]}},
    "too short": {"spec": {"expirationSeconds": 5}},
    "too long": {"spec": {"expirationSeconds": 5_000_000_000}},
    "bound to nothing": {"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "none"}}},
    "bound to a ConfigMap": {"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "none"}}},
    "of another name": {"metadata": {"name": "other"}},
    "of another UID": {"metadata": {"uid": "x"}},
    "of another kind": {"kind": "Foo", "apiVersion": "authentication.k8s.io/v1"},
}
_PATH = {"nonResourceAttributes": {"verb": "get", "path": "/api"}}  # one binding allows it
_REVIEWS = {
    "of oneself": post(_SELF, _may("get", "pods")),
    "of a path": as_user("bob", post(_SELF, {"spec": _PATH})),
    "of an unknown path": as_user(
        "bob", post(_SELF, {"spec": {"nonResourceAttributes": {"verb": "get", "path": "/x"}}})
    ),
    "of nothing": post(_SELF, {"metadata": {"name": "a"}, "spec": {}}),
    "of both": post(_SELF, {"spec": {**_PATH, "resourceAttributes": {"verb": "get"}}}),
    "of a user": post(_SUBJECT, {"spec": {"user": "bob", **_PATH}}),
    "of a group": post(_SUBJECT, {"spec": {"groups": ["system:authenticated"], **_PATH}}),
    "of the masters": post(_SUBJECT, {"spec": {"groups": ["system:masters"], **_may("x", "y")["spec"]}}),
    "of nobody": post(_SUBJECT, {"spec": _PATH}),
    "of one in a namespace": post(_LOCAL, {"spec": {"user": "bob", **_may("get", "pods")["spec"]}}),
    "of one in another namespace": post(
        _LOCAL, {"spec": {"user": "bob", **_may("get", "pods", namespace="x")["spec"]}}
    ),
    "of a path in a namespace": post(_LOCAL, {"spec": {"user": "bob", **_PATH}}),
    "as bob, of eve": as_user("bob", post(_SUBJECT, {"spec": {"user": "eve", **_PATH}})),
    "of rules": as_user("bob", post(_RULES, {"spec": {"namespace": "{ns}"}})),
    "of rules nowhere": as_user("bob", post(_RULES, {"spec": {}})),
    "of a user's identity": as_user("bob", post(_WHO, {}), groups="devs"),
    "of a ServiceAccount's identity": as_user("system:serviceaccount:a:b", post(_WHO, {})),
    "of anonymous": as_user("system:anonymous", post(_SELF, {"spec": _PATH})),
    "by GET": get(_RULES),
    "by GET with a name": get(f"{_RULES}/x"),
    "by DELETE": delete(_WHO),
    "without its namespace": post(f"{_ACCESS}/localsubjectaccessreviews", {"spec": {}}),
    "in a namespace it does not have": post(_SUBJECT.replace("v1/", "v1/namespaces/{ns}/"), {}),
    "of an unknown token": post(_TOKENS, {"spec": {"token": "x"}}),
    "of no token": post(_TOKENS, {"spec": {}}),
}
_AGGREGATION = {"clusterRoleSelectors": [{"matchLabels": {"to": "{ns}"}}]}
_PART = _cluster_role("part-{ns}", _rule("get", "pods"), metadata={"labels": {"to": "{ns}"}})

SCENARIOS = (
    *(_guarded(f"bob may not: {name}", as_user("bob", ask)) for name, ask in _REFUSED.items()),
    _guarded("nobody may not", with_token("", get(PODS)), with_token("", get("/nowhere"))),
    _guarded("nobody may see the version's group", with_token("", get("/apis"))),
    _guarded("a wrong token", with_token("wrong", get(PODS)), with_token("wrong", get("/nowhere"))),
    *(
        _guarded(f"may bob: {name}", *_given(*_RULES_OF_BOB), _as_bob(post(_SELF, ask)))
        for name, ask in _QUESTIONS.items()
    ),
    _guarded(
        "a name is enough",
        *_given(_rule("get list delete", "configmaps", names="a")),
        post(MAPS, config_map("a")),
        _as_bob(get(f"{MAPS}/a")),
        _as_bob(get(MAPS, fieldSelector="metadata.name=a", resourceVersion="0")),
        _as_bob(get(MAPS)),
        _as_bob(delete(MAPS)),
        _as_bob(get(f"{MAPS}/b")),
    ),
    _guarded(
        "the owner of what bob writes", *_given(_rule("create", "configmaps")), _as_bob(post(MAPS, config_map("a")))
    ),
    *(_guarded(f"bob writes {name}", *_HELD, *asks) for name, asks in _ESCALATIONS.items()),
    _guarded(
        "a missing role", *_MISSING, _as_bob(get(SECRETS)), _as_bob(post(_RULES, {"spec": {"namespace": "{ns}"}}))
    ),
    _guarded(
        "escalation with a missing role", *_MISSING, _as_bob(post(_ROLES, _role(_rule("get", "secrets"), name="new")))
    ),
    _guarded(
        "bob may escalate",
        *_given(_MAKER, _rule("escalate", "roles", groups=RBAC)),
        _as_bob(post(_ROLES, _role(_rule("get", "secrets"), name="new"))),
    ),
    _guarded(
        "bob may bind one role",
        *_given(_MAKER, _rule("bind", "clusterroles", groups=RBAC, names="view")),
        _as_bob(post(_BINDINGS, _binding("view", "ClusterRole", name="new"))),
        _as_bob(post(_BINDINGS, _binding("system:discovery", "ClusterRole", name="other"))),
    ),
    *(_guarded(f"impersonation of {name}", *_IMPERSONATOR, ask) for name, ask in _IMPERSONATIONS.items()),
    *(
        _guarded(f"a token request: {name}", _ROBOTS[0], post(f"{ACCOUNTS}/robot/token", body))
        for name, body in _REQUESTS.items()
    ),
    _guarded("a token of nobody", post(f"{ACCOUNTS}/none/token", {}), get(f"{ACCOUNTS}/none/token")),
    _guarded("a token's user", *_ROBOTS, _robot(post(_WHO, {})), _robot(get(f"{PODS}/x/log"))),
    _guarded(
        "a token's review",
        *_ROBOTS,
        post(_TOKENS, {"spec": {"token": _TOKEN}}),
        post(_TOKENS, {"spec": {"token": _TOKEN, "audiences": ["x"]}}),
    ),
    _guarded(
        "a token without its account",
        *_ROBOTS,
        delete(ACCOUNTS, labelSelector="is=robot"),
        settled(_robot(get(PODS))),
        post(_TOKENS, {"spec": {"token": _TOKEN}}),
    ),
    _guarded(
        "a token bound to a Secret",
        _ROBOTS[0],
        post(SECRETS, {"metadata": {"name": "s"}}),
        post(
            f"{ACCOUNTS}/robot/token", {"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "s"}}}
        ),
        with_token("$2.status.token", get(PODS)),
        delete(f"{SECRETS}/s"),
        settled(with_token("$2.status.token", get(PODS))),
    ),
    *(_guarded(f"a review {name}", ask) for name, ask in _REVIEWS.items()),
    scenario("auth: a review in an open server", post(_SELF, _may("get", "pods")), post(_SELF, {"spec": _PATH})),
    _guarded(
        "an aggregated role",
        post(_CLUSTER_ROLES, _cluster_role("all-{ns}", _rule("get", "secrets"), aggregationRule=_AGGREGATION)),
        post(_CLUSTER_ROLES, _PART),
        post(_CLUSTER_BINDINGS, _binding("all-{ns}", "ClusterRole", name="{ns}", cluster=True)),
        settled(_as_bob(post(_SELF, _may("get", "pods")))),
        delete(f"{_CLUSTER_ROLES}/part-{{ns}}"),
        settled(_as_bob(post(_SELF, _may("get", "pods")))),
    ),
)
