"""Nobody grants more than they have: the checks of written roles and bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.auth.attributes import Attributes, forbidden, list_quoted
from kubectl_ctrl.sandbox.auth.rbac import BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, GROUP, ROLES, Rbac, url_covers
from kubectl_ctrl.sandbox.requests import ParsedRequest

_EVERYTHING: tuple[Obj, ...] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_OF_COLLECTOR = ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation", "selfLink")
# One permission: group, resource, verb and name, or path and verb; "" is the core group, None no name.
_Single = tuple[str | None, str | None, str | None, str | None, str]


def check(rbac: Rbac, ask: ParsedRequest, new: Obj, old: Obj | None) -> None:
    """Refuse a role or binding that gives its subjects more than the writer has."""
    if ask.resource.group != GROUP or ask.user.all_mighty or (old is not None and _only_collected(old, new)):
        return
    if ask.resource in (CLUSTER_ROLES, ROLES):
        _check_role(rbac, ask, new, old)
    elif ask.resource in (CLUSTER_BINDINGS, BINDINGS):
        _check_binding(rbac, ask, new)


def _only_collected(old: Obj, new: Obj) -> bool:
    """Whether the write changes only what the garbage collector may change."""

    def rest(obj: Obj) -> Obj:
        return {
            **obj,
            "metadata": {key: obj["metadata"].get(key) for key in obj["metadata"] if key not in _OF_COLLECTOR},
        }

    return same(rest(old), rest(new))


def _check_role(rbac: Rbac, ask: ParsedRequest, new: Obj, old: Obj | None) -> None:
    if _may(rbac, ask, "escalate", ask.resource.plural, ask.name):
        return
    _check_held(rbac, ask, new, new.get("rules") or ())
    aggregates = any((obj.get("aggregationRule") or {}).get("clusterRoleSelectors") for obj in (new, old or {}))
    if aggregates and _missing(rbac, ask, _EVERYTHING):
        raise _refused(ask, new, "must have cluster-admin privileges to use the aggregationRule")


def _check_binding(rbac: Rbac, ask: ParsedRequest, new: Obj) -> None:
    ref = new["roleRef"]
    resource = ROLES if ref["kind"] == "Role" else CLUSTER_ROLES
    if _may(rbac, ask, "bind", resource.plural, ref["name"]):
        return
    role = rbac.role(ref, ask.namespace)
    if role is None:
        raise answers.not_found(ask.resource, ref["name"])  # the server names the resource of the request
    _check_held(rbac, ask, new, role.get("rules") or ())


def _may(rbac: Rbac, ask: ParsedRequest, verb: str, plural: str, name: str) -> bool:
    asked = Attributes(
        user=ask.user, verb=verb, group=GROUP, version="*", resource=plural, namespace=ask.namespace, name=name
    )
    return rbac.decide(asked).allowed


def _check_held(rbac: Rbac, ask: ParsedRequest, new: Obj, rules: Iterable[Obj]) -> None:
    if not (missing := _missing(rbac, ask, rules)):
        return
    user = f'user "{ask.user.name}" (groups={list_quoted(ask.user.groups)})'
    said = "\n".join(sorted(set(_described(missing))))
    error = rbac.grants(ask.user, ask.namespace).error(ask.resource.plural)
    why = f"{user} is attempting to grant RBAC permissions not currently held:\n{said}"
    raise _refused(ask, new, f"{why}; resolution errors: [{error}]" if error else why)


def _refused(ask: ParsedRequest, new: Obj, why: str) -> answers.Refusal:
    return forbidden(GROUP, ask.resource.plural, new["metadata"].get("name", ""), why)


def _missing(rbac: Rbac, ask: ParsedRequest, rules: Iterable[Obj]) -> list[_Single]:
    held = [grant.rule for grant in rbac.grants(ask.user, ask.namespace).found]
    singles = (single for rule in rules for single in _broken_down(rule))
    return [single for single in singles if not any(_covers(rule, single) for rule in held)]


def _broken_down(rule: Obj) -> Iterator[_Single]:
    verbs = rule.get("verbs") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                for name in rule.get("resourceNames") or (None,):
                    yield group, resource, name, None, verb
    for url in rule.get("nonResourceURLs") or ():
        for verb in verbs:
            yield None, None, None, url, verb


def _covers(rule: Obj, single: _Single) -> bool:
    group, resource, name, url, verb = single
    if not {"*", verb} & set(rule.get("verbs") or ()):
        return False
    if url is not None:
        return any(url_covers(held, url) for held in rule.get("nonResourceURLs") or ())
    assert resource is not None
    names = rule.get("resourceNames") or ()
    _, slash, sub = resource.partition("/")
    wanted = {"*", resource, *([f"*/{sub}"] if slash else [])}
    return (
        bool({"*", group} & set(rule.get("apiGroups") or ()))
        and bool(wanted & set(rule.get("resources") or ()))
        and (not names or name in names)
    )


def _described(missing: Iterable[_Single]) -> Iterator[str]:
    """One line for each resource, with all its missing verbs."""
    verbs: dict[tuple[str | None, str | None, str | None], list[str]] = {}
    for group, resource, name, url, verb in missing:
        if url is not None:
            yield f"{{NonResourceURLs:{list_quoted([url])}, Verbs:{list_quoted([verb])}}}"
        else:
            verbs.setdefault((group, resource, name), []).append(verb)
    for (group, resource, name), listed in verbs.items():
        start = f"{{APIGroups:{list_quoted([group or ''])}, Resources:{list_quoted([resource or ''])}"
        named = "" if name is None else f", ResourceNames:{list_quoted([name])}"
        yield f"{start}{named}, Verbs:{list_quoted(listed)}}}"
