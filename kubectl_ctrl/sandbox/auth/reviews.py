"""The resources that only answer: access and rules reviews, SelfSubjectReview, TokenReview and TokenRequest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.model.objects import Key, Obj, uid_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.answers import Problem, encode
from kubectl_ctrl.sandbox.auth.attributes import Attributes
from kubectl_ctrl.sandbox.auth.guard import Guard
from kubectl_ctrl.sandbox.auth.tokens import ISSUER, BadToken, Binding
from kubectl_ctrl.sandbox.auth.users import User
from kubectl_ctrl.sandbox.fields import managed
from kubectl_ctrl.sandbox.kinds import schemas
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.sandbox.kinds.checks.words import invalid
from kubectl_ctrl.sandbox.requests import ParsedRequest
from kubectl_ctrl.sandbox.storage import Storage
from kubectl_ctrl.value import replace

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"
_ALL = ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]})
_SHORTEST, _LONGEST, _USUAL = 600, 1 << 32, 3_600  # seconds of a requested token

Handler = Callable[[ParsedRequest], Obj]


def _kind(group: str, kind: str, *, namespaced: bool = False) -> ServedKind:
    resource = Resource(group, "v1", f"{kind.lower()}s", kind, namespaced)
    schema = schemas.of(group, "v1", kind)
    return ServedKind(resource=resource, singular=kind.lower(), storage_version="v1", schema=schema)


_LOCAL = _kind(AUTHORIZATION, "LocalSubjectAccessReview", namespaced=True)
_SUBJECT = _kind(AUTHORIZATION, "SubjectAccessReview")
_SELF = _kind(AUTHORIZATION, "SelfSubjectAccessReview")
_RULES = _kind(AUTHORIZATION, "SelfSubjectRulesReview")
_WHO = _kind(AUTHENTICATION, "SelfSubjectReview")
_TOKEN = _kind(AUTHENTICATION, "TokenReview")
KINDS = (_LOCAL, _SUBJECT, _SELF, _RULES, _WHO, _TOKEN)
_TOKEN_REQUEST = _kind(AUTHENTICATION, "TokenRequest", namespaced=True)


class Reviews:
    """Answers a POST with the object in its body and a status; stores nothing."""

    def __init__(self, guard: Guard, storage: Storage, clock: Clock) -> None:
        self._guard = guard
        self._storage = storage
        self._clock = clock
        reviews = (self._local, self._subject, self._self, self._rules, self._who, self._token)
        self._handlers: dict[tuple[str, str, str], Handler] = {
            (kind.resource.group, kind.resource.plural, ""): handler
            for kind, handler in zip(KINDS, reviews, strict=True)
        }
        self._handlers["", "serviceaccounts", "token"] = self._token_request

    def find(self, ask: ParsedRequest) -> Handler | None:
        """The handler of a request; None if its resource has objects."""
        handler = self._handlers.get((ask.resource.group, ask.resource.plural, ask.subresource))
        if handler is None:
            return None
        if ask.name and not ask.subresource:
            raise answers.no_such_resource()
        if ask.verb != "create":
            raise answers.not_allowed()
        if ask.resource.namespaced and not ask.namespace:
            raise answers.no_such_resource()
        return handler

    # -- access

    def _self(self, ask: ParsedRequest) -> Obj:
        obj = self._given(ask)
        problems = [*_attributes_problems(obj["spec"]), *_metadata_problems(obj, "must be empty")]
        return self._decided(obj, ask.user, problems)

    def _subject(self, ask: ParsedRequest) -> Obj:
        obj = self._given(ask)
        problems = [*_subject_problems(obj["spec"]), *_metadata_problems(obj, "must be empty")]
        return self._decided(obj, _subject_of(obj["spec"]), problems)

    def _local(self, ask: ParsedRequest) -> Obj:
        obj = self._given(ask)
        spec = obj["spec"]
        obj["metadata"]["namespace"] = obj["metadata"].get("namespace") or ask.namespace
        problems = [*_subject_problems(spec), *_metadata_problems(obj, "must be empty except for namespace")]
        place = (spec.get("resourceAttributes") or {}).get("namespace", "")
        if spec.get("resourceAttributes") is not None and place != obj["metadata"]["namespace"]:
            field = "spec.resourceAttributes.namespace"
            problems.append(invalid(field, place, "must match metadata.namespace"))
        if spec.get("nonResourceAttributes") is not None:
            shown = _path_shown(spec["nonResourceAttributes"])
            problems.append(invalid("spec.nonResourceAttributes", shown, "disallowed on this kind of request"))
        return self._decided(obj, _subject_of(spec), problems)

    def _decided(self, obj: Obj, user: User, problems: list[Problem]) -> Obj:
        if problems:
            raise answers.invalid(Resource(AUTHORIZATION, "v1", "", ""), "", problems)
        decision = self._guard.decide(_asked(obj["spec"], user))
        reason = {"reason": decision.reason} if decision.reason else {}
        return {**obj, "status": {"allowed": decision.allowed, **reason}}

    def _rules(self, ask: ParsedRequest) -> Obj:
        namespace = self._given(ask)["spec"].get("namespace")
        if not namespace:
            raise answers.bad_request("no namespace on request")
        rules: Iterable[Obj] = _ALL
        error = ""
        if self._guard.checking:
            grants = self._guard.rbac.grants(ask.user, namespace)
            rules, error = (grant.rule for grant in grants.found), grants.error()
        rules = list(rules)
        status: Obj = {
            "resourceRules": [
                _picked(rule, "apiGroups", "resources", "resourceNames") for rule in rules if rule.get("resources")
            ],
            "nonResourceRules": [_picked(rule, "nonResourceURLs") for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
            **({"evaluationError": error} if error else {}),
        }
        return {**_typed(_RULES), "metadata": {}, "spec": {}, "status": status}

    # -- identities

    def _who(self, ask: ParsedRequest) -> Obj:
        self._given(ask)
        status = {"userInfo": _shown(ask.user)}
        return {**_typed(_WHO), "metadata": {"creationTimestamp": self._now()}, "status": status}

    def _token(self, ask: ParsedRequest) -> Obj:
        obj = self._given(ask)
        spec = obj["spec"]
        if not spec.get("token"):
            raise answers.bad_request("token is required for TokenReview in authentication")
        audiences = tuple(spec.get("audiences") or (ISSUER,))
        try:
            user = self._guard.tokens.user_of(spec["token"], audiences)
        except BadToken as error:
            return {**obj, "status": {"user": {}, "error": str(error)}}
        return {**obj, "status": {"authenticated": True, "user": _shown(user), "audiences": list(audiences)}}

    def _token_request(self, ask: ParsedRequest) -> Obj:
        ask = replace(ask, kind=_TOKEN_REQUEST)
        _, obj = ask.opened()
        _check_type(ask, obj)
        spec = obj.setdefault("spec", {})
        spec.setdefault("expirationSeconds", _USUAL)
        obj = self._owned(ask, obj)
        account = self._account(ask, obj)
        meta = account["metadata"]
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        spec.setdefault("boundObjectRef", None)
        _check_duration(spec["expirationSeconds"])
        bound = self._bound(ask, spec["boundObjectRef"]) if spec["boundObjectRef"] else None
        token = self._guard.tokens.issue(account, spec["audiences"], spec["expirationSeconds"], bound)
        obj["metadata"] |= {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]}
        obj["metadata"]["creationTimestamp"] = self._now()
        ends = rfc3339(self._clock.now() + spec["expirationSeconds"])
        return {**obj, "status": {"token": token, "expirationTimestamp": ends}}

    def _account(self, ask: ParsedRequest, obj: Obj) -> Obj:
        """The ServiceAccount of the path, which the body must not contradict."""
        for name, right in (("name", ask.name), ("namespace", ask.namespace)):
            given = obj["metadata"].get(name) or right
            if given != right:
                words = f"must match the service account {name} if specified"
                raise answers.invalid(ask.resource, ask.name, [invalid(f"metadata.{name}", given, words)])
        account = self._stored("serviceaccounts", ask.namespace, ask.name)
        if (given := obj["metadata"].get("uid") or uid_of(account)) != uid_of(account):
            why = f"the UID in the token request ({given}) does not match the UID of the service account"
            raise _conflict(AUTHENTICATION, "TokenRequest", ask.name, f"{why} ({uid_of(account)})")
        return account

    def _bound(self, ask: ParsedRequest, ref: Obj) -> Binding:
        group, _, version = ref.get("apiVersion", "").rpartition("/")
        kind, name = ref.get("kind", ""), ref.get("name", "")
        if group or kind not in ("Pod", "Secret", "Node"):
            raise answers.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        obj = self._stored(f"{kind.lower()}s", "" if kind == "Node" else ask.namespace, name)
        spec = obj.get("spec") or {}
        if kind == "Pod" and spec.get("serviceAccountName", "") != ask.name:
            why = "to pod running with different serviceaccount name."
            raise answers.bad_request(f"cannot bind token for serviceaccount {_json(ask.name)} {why}")
        if ref.get("uid") and ref["uid"] != uid_of(obj):
            why = f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record."
            why += " The object might have been deleted and then recreated"
            raise _conflict(group, kind, name, why)
        node = spec.get("nodeName", "") if kind == "Pod" else ""
        found = self._storage.get("nodes", Key("", node)) if node else None
        return Binding(kind.lower(), name, uid_of(obj), (node, uid_of(found) if found else ""))

    def _stored(self, table: str, namespace: str, name: str) -> Obj:
        obj = self._storage.get(table, Key(namespace, name))
        if obj is None:
            raise answers.not_found(Resource("", "v1", table, ""), name)
        return obj

    # -- shapes

    def _given(self, ask: ParsedRequest) -> Obj:
        """The object in the body, with its owner, as the server returns it."""
        _, obj = ask.opened()
        _check_type(ask, obj)
        obj.setdefault("spec", {})
        obj.pop("status", None)
        return self._owned(ask, obj)

    def _owned(self, ask: ParsedRequest, obj: Obj) -> Obj:
        resource = ask.resource
        origin = managed.WriteOrigin(
            manager=ask.manager, api_version=resource.api_version, subresource=ask.subresource, now=self._now()
        )
        obj = managed.updated(ask.kind, None, {**_typed(ask.kind), **obj}, origin)
        for entry in obj["metadata"].get("managedFields") or ():
            # These structs always exist, so nobody owns them.
            owned = entry["fieldsV1"].get("f:spec", {})
            for struct in (owned, owned.get("f:boundObjectRef", {})):
                struct.pop(".", None)
        return obj

    def _now(self) -> str:
        return rfc3339(self._clock.now())

    def __repr__(self) -> str:
        return f"Reviews(resources={len(self._handlers)})"


def _check_type(ask: ParsedRequest, obj: Obj) -> None:
    resource, kind = ask.resource, obj.get("kind")
    if kind and kind != resource.kind:
        why = (
            f'no kind "{kind}" is registered for version "{resource.api_version}" in scheme "pkg/runtime/scheme.go:111"'
        )
        raise answers.bad_request(
            f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'
        )
    obj.update(_typed(ask.kind))


def _typed(kind: ServedKind) -> Obj:
    return {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version}


def _json(value: Any) -> str:
    return encode(value).decode()


def _picked(rule: Obj, *names: str) -> Obj:
    return {name: rule[name] for name in ("verbs", *names) if rule.get(name)}


def _shown(user: User) -> Obj:
    shown: Obj = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return {key: value for key, value in shown.items() if value}


def _subject_of(spec: Obj) -> User:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    groups = tuple(spec.get("groups") or ())
    return User(name=spec.get("user", ""), uid=spec.get("uid", ""), groups=groups, extra=extra)


def _asked(spec: Obj, user: User) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(user=user, verb=path.get("verb", ""), of_resource=False, path=path.get("path", ""))
    given = spec["resourceAttributes"]
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(user=user, version=given.get("version") or "*", **{name: given.get(name, "") for name in names})


def _path_shown(given: Obj) -> Obj:
    return {"Path": given.get("path", ""), "Verb": given.get("verb", "")}


def _attributes_problems(spec: Obj) -> Iterator[Problem]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        words = "cannot be specified in combination with resourceAttributes"
        yield invalid("spec.nonResourceAttributes", _path_shown(path), words)
    if resource is None and path is None:
        words = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield invalid("spec.resourceAttributes", None, words)


def _subject_problems(spec: Obj) -> Iterator[Problem]:
    yield from _attributes_problems(spec)
    if not spec.get("user") and not spec.get("groups"):
        yield invalid("spec.user", "", "at least one of user or group must be specified")


def _metadata_problems(obj: Obj, words: str) -> Iterator[Problem]:
    ignored = ("managedFields", "namespace") if "namespace" in words else ("managedFields",)
    if any(value for key, value in obj["metadata"].items() if key not in ignored):
        shown = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
        yield invalid("metadata", shown, words)


def _check_duration(seconds: int) -> None:
    words = ""
    if seconds < _SHORTEST:
        words = "may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST:
        words = "may not specify a duration larger than 2^32 seconds"
    if words:
        raise answers.invalid(_TOKEN_REQUEST.resource, "", [invalid("spec.expirationSeconds", seconds, words)])


def _conflict(group: str, kind: str, name: str, why: str) -> answers.Refusal:
    """A 409 about an object whose kind stands for its resource."""
    return answers.conflict(Resource(group, "", kind, kind), name, why)
