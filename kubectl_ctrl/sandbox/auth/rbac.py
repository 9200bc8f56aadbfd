"""Roles and bindings decide: the rules of a user, and whether one of them allows a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.sandbox.auth.attributes import Attributes, quoted
from kubectl_ctrl.sandbox.auth.users import User, account_name
from kubectl_ctrl.sandbox.storage import Storage, StoredChange
from kubectl_ctrl.value import Value

GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Resource(GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_BINDINGS = Resource(GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
ROLES = Resource(GROUP, "v1", "roles", "Role")
BINDINGS = Resource(GROUP, "v1", "rolebindings", "RoleBinding")
_TABLES = frozenset(one.full_name for one in (CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS))
_MOST_USERS = 2_000  # remembered between two changes of roles and bindings


class Decision(Value, frozen=True):
    allowed: bool
    reason: str = ""


class Grant:
    """One rule that a user has, and the binding that gives it."""

    __slots__ = ("_groups", "_names", "_urls", "_verbs", "rule", "source")

    def __init__(self, rule: Obj, source: str) -> None:
        self.rule = rule
        self.source = source
        self._verbs = frozenset(rule.get("verbs") or ())
        self._groups = frozenset(rule.get("apiGroups") or ())
        self._names = frozenset(rule.get("resourceNames") or ())
        self._urls = tuple(rule.get("nonResourceURLs") or ())

    def allows(self, asked: Attributes) -> bool:
        """Whether it allows a request for one of its resources, or for a path."""
        if asked.verb not in self._verbs and "*" not in self._verbs:
            return False
        if not asked.of_resource:
            return any(url_covers(url, asked.path) for url in self._urls)
        if asked.group not in self._groups and "*" not in self._groups:
            return False
        return not self._names or asked.name in self._names

    def __repr__(self) -> str:
        return f"Grant({self.rule!r}, {self.source!r})"


def url_covers(url: str, path: str) -> bool:
    return url == path or (url.endswith("*") and path.startswith(url.rstrip("*")))


class Grants:
    """The rules of one user in one namespace, and the roles that bindings name but nobody created."""

    __slots__ = ("_of_paths", "_of_resources", "found", "missing")

    def __init__(self, found: list[Grant], missing: list[tuple[str, str]]) -> None:
        self.found = found
        self.missing = missing  # kind and name
        self._of_paths = [grant for grant in found if grant.rule.get("nonResourceURLs")]
        self._of_resources: dict[str, list[Grant]] = {}
        for grant in found:
            for resource in frozenset(grant.rule.get("resources") or ()):
                self._of_resources.setdefault(resource, []).append(grant)

    def allowing(self, asked: Attributes) -> Grant | None:
        """The first that allows the request."""
        if not asked.of_resource:
            return next((grant for grant in self._of_paths if grant.allows(asked)), None)
        for resource in (asked.combined, f"*/{asked.subresource}", "*"):
            for grant in self._of_resources.get(resource, ()):
                if grant.allows(asked):
                    return grant
        return None

    def error(self, resource: str = "") -> str:
        """The missing roles in the words of the authorizer, or of a write to a resource."""
        told = [f"{resource or kind.lower()}.{GROUP} {quoted(name)} not found" for kind, name in self.missing]
        return f"[{', '.join(told)}]" if told[1:] else "".join(told)

    def __repr__(self) -> str:
        return f"Grants(found={len(self.found)}, missing={self.missing})"


class Rbac:
    """The authorizer. It reads the stored roles and bindings, and remembers the rules of the users that asked."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[tuple[str, tuple[str, ...], str], Grants] = {}
        storage.listeners.append(self._heard)

    def _heard(self, table: str, _change: StoredChange) -> None:
        if table in _TABLES:
            self._known.clear()

    def forget(self) -> None:
        """The current state is not the result of logged steps."""
        self._known.clear()

    def decide(self, asked: Attributes) -> Decision:
        if asked.user.all_mighty:
            return Decision(True)
        grants = self.grants(asked.user, asked.namespace)
        if (grant := grants.allowing(asked)) is not None:
            return Decision(True, f"RBAC: allowed by {grant.source}")
        return Decision(False, f"RBAC: {grants.error()}" if grants.missing else "")

    def grants(self, user: User, namespace: str) -> Grants:
        key = user.name, user.groups, namespace
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MOST_USERS:
                self._known.clear()
            known = self._known[key] = self._collected(user, namespace)
        return known

    def _collected(self, user: User, namespace: str) -> Grants:
        found: list[Grant] = []
        missing: dict[tuple[str, str], None] = {}
        for binding in self._bindings(namespace):
            subject = _first_subject(binding, user)
            if subject is None:
                continue
            ref = binding["roleRef"]
            role = self.role(ref, binding["metadata"].get("namespace", ""))
            if role is None:
                missing[ref["kind"], ref["name"]] = None
                continue
            source = _described(binding, subject)
            found += [Grant(rule, source) for rule in role.get("rules") or ()]
        return Grants(found, list(missing))

    def _bindings(self, namespace: str) -> Iterator[Obj]:
        """Those of the cluster first, each in the order of their names."""
        rows = self._storage.rows(CLUSTER_BINDINGS.full_name)
        yield from (rows[key] for key in sorted(rows))
        local = self._storage.rows(BINDINGS.full_name) if namespace else {}
        yield from (local[key] for key in sorted(local) if key.namespace == namespace)

    def role(self, ref: Obj, namespace: str) -> Obj | None:
        """The role that a roleRef in this namespace names."""
        if ref["kind"] == "Role":
            return self._storage.get(ROLES.full_name, Key(namespace, ref["name"]))
        return self._storage.get(CLUSTER_ROLES.full_name, Key("", ref["name"]))

    def __repr__(self) -> str:
        return f"Rbac(known={len(self._known)})"


def _first_subject(binding: Obj, user: User) -> Obj | None:
    namespace = binding["metadata"].get("namespace", "")
    subjects: Iterable[Obj] = binding.get("subjects") or ()
    return next((subject for subject in subjects if _is(subject, user, namespace)), None)


def _is(subject: Obj, user: User, namespace: str) -> bool:
    match subject.get("kind"):
        case "User":
            return bool(user.name == subject["name"])
        case "Group":
            return subject["name"] in user.groups
        case "ServiceAccount":
            place = subject.get("namespace") or namespace
            return bool(place) and user.name == account_name(place, subject["name"])
    return False


def _described(binding: Obj, subject: Obj) -> str:
    meta, ref = binding["metadata"], binding["roleRef"]
    namespace = meta.get("namespace", "")
    name = f"{meta['name']}/{namespace}" if namespace else meta["name"]
    who = subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or namespace}"
    role = f"{ref['kind']} {quoted(ref['name'])}"
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    return f"{kind} {quoted(name)} of {role} to {subject['kind']} {quoted(who)}"
