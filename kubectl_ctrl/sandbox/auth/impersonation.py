"""A request in the name of another user, by the headers Impersonate-User, -Group, -Uid and -Extra-KEY.

The modes of constrained impersonation come first, each with a verb of its own for the user and one for the request;
the verb `impersonate` is the last. The refusal is that of the first mode that fits the wanted user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import unquote

from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.auth.attributes import Attributes, denied, quoted
from kubectl_ctrl.sandbox.auth.rbac import Decision
from kubectl_ctrl.sandbox.auth.users import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    UNAUTHENTICATED,
    User,
    account_groups,
    account_of,
)
from kubectl_ctrl.value import replace

Decide = Callable[[Attributes], Decision]

_EXTRA = "impersonate-extra-"
_AUTHENTICATION = "authentication.k8s.io"
_NODE = re.compile(r"system:node:([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)")
_NODE_OF = "authentication.kubernetes.io/node-name"
_MANY = 4  # values from which on the right to all of them is tried first


def wanted_user(headers: Mapping[str, str]) -> User | None:
    """The user of the headers, whose names are lower-case; a list of groups is separated by commas."""
    extra: dict[str, tuple[str, ...]] = {}
    for header, value in headers.items():
        if header.startswith(_EXTRA):
            extra[unquote(header.removeprefix(_EXTRA))] = _listed(value)
    groups = _listed(headers["impersonate-group"]) if "impersonate-group" in headers else ()
    wanted = User(
        name=headers.get("impersonate-user", ""), uid=headers.get("impersonate-uid", ""), groups=groups, extra=extra
    )
    if not wanted.name and (wanted.uid or groups or extra):
        raise answers.bad_request(f"requested {_in_go(wanted)} without impersonating a user name")
    return wanted if wanted.name else None


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(","))


def _in_go(user: User) -> str:
    """The user as Go's %#v prints it."""
    groups = f"[]string{{{', '.join(map(quoted, user.groups))}}}" if user.groups else "[]string(nil)"
    pairs = (f"{quoted(key)}:[]string{{{', '.join(map(quoted, user.extra[key]))}}}" for key in sorted(user.extra))
    extra = f"map[string][]string{{{', '.join(pairs)}}}" if user.extra else "map[string][]string(nil)"
    return f"&user.DefaultInfo{{Name:{quoted(user.name)}, UID:{quoted(user.uid)}, Groups:{groups}, Extra:{extra}}}"


class Impersonation:
    """Decides impersonations; remembers the last successful mode of each user, which is tried first."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self._last: dict[str, str] = {}

    def impersonated(self, wanted: User, asked: Attributes) -> User:
        """The user in whose name the request continues."""
        last = self._last.get(asked.user.name, "")
        first: answers.Refusal | None = None
        for mode in sorted(_modes(wanted, asked.user), key=lambda one: one != last):
            try:
                user = self._checked(mode, wanted, asked)
            except answers.Refusal as refusal:
                first = first or refusal
            else:
                self._last[asked.user.name] = mode
                return user
        assert first is not None, "the last mode fits every user"
        raise first

    def _checked(self, mode: str, wanted: User, asked: Attributes) -> User:
        verb = "impersonate"
        if mode != "legacy":
            verb = f"impersonate:{mode}"
            self._check(replace(asked, verb=f"impersonate-on:{mode}:{asked.verb}"))
        for one in _questions(mode, verb, wanted, asked.user, self._may):
            self._check(one)
        groups = wanted.groups
        if not groups and (account := account_of(wanted.name)):
            groups = account_groups(account[0])
        if not groups and mode.endswith("-node"):
            groups = ("system:nodes",)
        if wanted.name == ANONYMOUS:
            added = UNAUTHENTICATED
        else:
            added = UNAUTHENTICATED if UNAUTHENTICATED in groups else AUTHENTICATED
        return replace(wanted, groups=groups if added in groups else (*groups, added))

    def _check(self, asked: Attributes) -> None:
        decision = self._decide(asked)
        if not decision.allowed:
            raise denied(asked, decision.reason)

    def _may(self, asked: Attributes) -> bool:
        return self._decide(asked).allowed


def _modes(wanted: User, requestor: User) -> Iterator[str]:
    node, account = _NODE.fullmatch(wanted.name), account_of(wanted.name)
    alone = not (wanted.groups or wanted.uid or wanted.extra)
    if node and alone:
        if account_of(requestor.name) and requestor.extra.get(_NODE_OF) == (node[1],):
            yield "associated-node"
        yield "arbitrary-node"
    if account and alone:
        yield "serviceaccount"
    if not node and not account:
        yield "user-info"
    yield "legacy"


def _questions(
    mode: str, verb: str, wanted: User, user: User, may: Callable[[Attributes], bool]
) -> Iterator[Attributes]:
    """What the requesting user must be allowed, value by value."""
    constrained = mode != "legacy"
    core = Attributes(
        user=user, verb=verb, group=_AUTHENTICATION if constrained else "", version="v1", resource="users"
    )
    node, account = _NODE.fullmatch(wanted.name), account_of(wanted.name)
    if constrained and node:
        yield replace(core, resource="nodes", name="*" if mode == "associated-node" else node[1])
    elif account:
        yield replace(core, resource="serviceaccounts", namespace=account[0], name=account[1])
    else:
        yield replace(core, name=wanted.name)
    if wanted.uid:
        yield replace(core, group=_AUTHENTICATION, resource="uids", name=wanted.uid)
    yield from _groups(replace(core, resource="groups"), wanted, constrained, may)
    yield from _extras(replace(core, group=_AUTHENTICATION, resource="userextras"), wanted, constrained, may)


def _groups(
    core: Attributes, wanted: User, constrained: bool, may: Callable[[Attributes], bool]
) -> Iterator[Attributes]:
    if constrained and "" in wanted.groups:
        raise denied(core, "impersonating the empty string group is not allowed")
    if constrained and MASTERS in wanted.groups:
        raise denied(replace(core, name=MASTERS), "impersonating the system:masters group is not allowed")
    if constrained and len(wanted.groups) >= _MANY and may(replace(core, name="*")):
        return
    for group in wanted.groups:
        yield replace(core, name=group)


def _extras(
    core: Attributes, wanted: User, constrained: bool, may: Callable[[Attributes], bool]
) -> Iterator[Attributes]:
    if constrained:
        for key, values in wanted.extra.items():
            if not key:
                raise denied(core, "impersonating the empty string key in extra is not allowed")
            if key != key.lower():
                raise denied(core, f"impersonating a non-lowercase key in extra is not allowed: {quoted(key)}")
            if "" in values:
                raise denied(core, "impersonating the empty string value in extra is not allowed")
    many = max(len(wanted.extra), sum(map(len, wanted.extra.values()))) >= _MANY
    if constrained and many and may(replace(core, subresource="*", name="*")):
        return
    for key, values in wanted.extra.items():
        for value in values:
            yield replace(core, subresource=key, name=value)
