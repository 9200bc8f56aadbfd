"""Single rights, read from roles and written as roles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.value import Value, field, replace

GROUP = "rbac.authorization.k8s.io"
_VERSION = f"{GROUP}/v1"

_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


class Right(Value, order=True):
    """One verb on one resource type, everywhere or in one namespace, on all objects or on one name."""

    group: str
    resource: str  # plural, with its subresource: deployments/scale
    verb: str
    namespace: str = ""
    name: str = ""

    @property
    def what(self) -> tuple[str, str, str]:
        return self.group, self.resource, self.verb

    def covers(self, other: Right) -> bool:
        return self.what == other.what and self.namespace in ("", other.namespace) and self.name in ("", other.name)

    @property
    def full_name(self) -> str:
        """`deployments.apps/scale`, the form of kubectl."""
        plural, slash, sub = self.resource.partition("/")
        return f"{plural}.{self.group}{slash}{sub}" if self.group else self.resource

    def __str__(self) -> str:
        """`patch deployments.apps/scale web in default`."""
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} {self.full_name}{name}" + (f" in {self.namespace}" if self.namespace else "")


class CallOf(Value, kw_only=True):
    """A recorded call with its run and attempt."""

    run: str
    attempt: str = ""
    request: Request | None = None  # None for calls outside attempts, such as the renewal of a Lease
    call: Call


class RefusedRight(Value, kw_only=True):
    right: Right
    user: str  # "" if the server did not name it
    at: float  # wall time of the last time
    call: str = ""  # id of the call; "" for a cache
    count: int = 1


class ControllerRights(Value, kw_only=True):
    """The rights that one controller used, was refused and was granted."""

    controller: str
    used: frozenset[Right]
    granted: frozenset[Right] = frozenset()
    refusals: tuple[RefusedRight, ...] = ()
    missing: dict[str, frozenset[Right]] = field(default_factory=dict)  # by user
    unused: frozenset[Right] = frozenset()
    since: float | None = None  # wall time of the first recorded run
    runs: int = 0
    attempts: int = 0


def least(rights: Iterable[Right]) -> frozenset[Right]:
    """The same rights without those that another one covers."""
    known = set(rights)
    wide = {right for right in known if not right.namespace and not right.name}
    what = {right.what for right in wide}
    narrow = [right for right in known if right not in wide and right.what not in what]
    return frozenset(wide | {one for one in narrow if not any(o.covers(one) for o in narrow if o != one)})


def rules(rights: Iterable[Right]) -> list[Obj]:
    """The fewest rules for these rights, in a stable order; all rights are cluster-wide, or in the same namespace."""
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for right in rights:
        verbs.setdefault((right.group, right.resource, right.name), set()).add(right.verb)
    # Names with the same verbs share a rule, and then resources of one group with the same names and verbs.
    names: dict[tuple[str, str, tuple[str, ...], bool], list[str]] = {}
    for (group, resource, name), may in sorted(verbs.items()):
        names.setdefault((group, resource, in_order(may), bool(name)), []).append(name)
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, may_all, _), which in names.items():
        resources.setdefault((group, may_all, tuple(filter(None, which))), []).append(resource)
    return [
        {
            "apiGroups": [group],
            "resources": found,
            **({"resourceNames": list(which)} if which else {}),
            "verbs": list(may),
        }
        for (group, may, which), found in resources.items()
    ]


def in_order(verbs: Iterable[str]) -> tuple[str, ...]:
    """In the usual order of Kubernetes."""
    return tuple(sorted(verbs, key=lambda verb: (_ORDER.index(verb) if verb in _ORDER else len(_ORDER), verb)))


def roles(rights: Iterable[Right], name: str, labels: dict[str, str] | None = None) -> list[Obj]:
    """A ClusterRole for cluster-wide rights, and a Role for each namespace."""
    places: dict[str, list[Right]] = {}
    for right in sorted(rights):
        places.setdefault(right.namespace, []).append(right)
    return [_role(place, name, labels or {}, rules(found)) for place, found in sorted(places.items())]


def _role(namespace: str, name: str, labels: dict[str, str], found: list[Obj]) -> Obj:
    meta: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    if labels:
        meta["labels"] = labels
    return {
        "apiVersion": _VERSION,
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": meta,
        "rules": found,
    }


def binding(role: Obj, user: str) -> Obj:
    """The binding of a role to a user or a ServiceAccount."""
    return {
        "apiVersion": _VERSION,
        "kind": f"{role['kind']}Binding",
        "metadata": dict(role["metadata"]),
        "roleRef": {"apiGroup": GROUP, "kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": [subject(user)],
    }


def subject(user: str) -> Obj:
    parts = user.split(":")
    if parts[:2] == ["system", "serviceaccount"] and len(parts) == 4:
        return {"kind": "ServiceAccount", "name": parts[3], "namespace": parts[2]}
    return {"apiGroup": GROUP, "kind": "User", "name": user}


def rights_in(role: Obj) -> frozenset[Right]:
    """The single rights of a Role or ClusterRole; `*` is kept."""
    namespace = str(role["metadata"].get("namespace") or "")
    return frozenset(
        Right(group, resource, verb, namespace, name)
        for rule in role.get("rules") or ()
        for group in rule.get("apiGroups") or ()
        for resource in rule.get("resources") or ()
        for verb in rule.get("verbs") or ()
        for name in rule.get("resourceNames") or ("",)
    )


def allows(granted: Right, asked: Right) -> bool:
    """Whether a rule allows it. Namespaces are not compared: the binding of a role decides where it applies."""
    resource, _, sub = granted.resource.partition("/")
    return (
        granted.group in ("*", asked.group)
        and granted.verb in ("*", asked.verb)
        and granted.name in ("", asked.name)
        # `*/scale` means the subresource of every type.
        and (
            granted.resource in ("*", asked.resource)
            or (resource == "*" and bool(sub) and asked.resource.partition("/")[2] == sub)
        )
    )


def everywhere(right: Right) -> Right:
    return replace(right, namespace="")
