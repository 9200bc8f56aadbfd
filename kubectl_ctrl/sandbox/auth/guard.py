"""Authenticate, impersonate, authorize: the way of every request before it is handled, and its record after it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.auth.attributes import Attributes, attributes_of, denied
from kubectl_ctrl.sandbox.auth.impersonation import Impersonation, wanted_user
from kubectl_ctrl.sandbox.auth.rbac import Decision, Rbac
from kubectl_ctrl.sandbox.auth.tokens import Authenticator, Tokens
from kubectl_ctrl.sandbox.auth.users import ADMIN, User
from kubectl_ctrl.sandbox.storage import Storage
from kubectl_ctrl.value import Value, replace


class RequestRecord(Value, kw_only=True):
    """One handled request, for audits and for roles made from what was asked."""

    user: User | None  # None: not authenticated
    verb: str
    group: str
    resource: str  # "": a path outside the resources
    subresource: str
    namespace: str
    name: str
    path: str
    query: tuple[tuple[str, str], ...]
    code: int
    audit_id: str
    user_agent: str


class Guard:
    """Decides about requests. Without an authenticator every request is the administrator's."""

    def __init__(self, auth: Authenticator | None, storage: Storage, clock: Clock, new_id: Callable[[], str]) -> None:
        self.checking = auth is not None
        self.accepted = auth or Authenticator(key=b"nothing is checked")
        self.rbac = Rbac(storage)
        self.tokens = Tokens(self.accepted, storage, clock, new_id)
        self.listeners: list[Callable[[RequestRecord], None]] = []  # called after each request
        self._impersonation = Impersonation(self.decide)

    def admit(self, request: HttpRequest) -> User:
        """The user of a request, who may make it; raises and records the refusal. The body is not read."""
        if not self.checking:
            return ADMIN
        user: User | None = None
        try:
            headers = {name.lower(): value for name, value in request.headers.items()}
            user = self.tokens.user_of_request(headers)
            asked = attributes_of(request, user)
            if (wanted := wanted_user(headers)) is not None:
                user = self._impersonation.impersonated(wanted, asked)
                asked = replace(asked, user=user)
            self._check(asked)
        except Refusal as refusal:
            self.record(request, user, refusal.code)
            raise
        return user

    def _check(self, asked: Attributes) -> None:
        decision = self.decide(asked)
        if not decision.allowed:
            raise denied(asked, decision.reason)

    def decide(self, asked: Attributes) -> Decision:
        return self.rbac.decide(asked) if self.checking else Decision(True)

    def record(self, request: HttpRequest, user: User | None, code: int) -> None:
        """Inform the listeners about an answered request."""
        if not self.listeners:
            return
        asked = attributes_of(request, user or ADMIN)
        record = RequestRecord(
            user=user,
            verb=asked.verb,
            group=asked.group,
            resource=asked.resource,
            subresource=asked.subresource,
            namespace=asked.namespace,
            name=asked.name or _created_name(request),
            path=asked.path,
            query=request.query,
            code=code,
            audit_id=_header(request.headers, "audit-id"),
            user_agent=_header(request.headers, "user-agent"),
        )
        for listener in self.listeners:
            listener(record)

    def __repr__(self) -> str:
        return f"Guard(checking={self.checking})"


def _created_name(request: HttpRequest) -> str:
    """The name in the body of a creation; empty for one that is generated, and for a body that is not JSON."""
    if request.method != "POST" or not request.body:
        return ""
    try:
        name = json.loads(request.body)["metadata"]["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return name if isinstance(name, str) else ""


def _header(headers: Mapping[str, str], wanted: str) -> str:
    return next((value for name, value in headers.items() if name.lower() == wanted), "")
