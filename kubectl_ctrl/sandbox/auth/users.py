"""A user, as authentication finds it."""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_ctrl.value import Value, field

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
_ACCOUNT = "system:serviceaccount:"
_ACCOUNTS = "system:serviceaccounts"


class User(Value, kw_only=True):
    """The user of a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def all_mighty(self) -> bool:
        return MASTERS in self.groups


ADMIN = User(name="kubernetes-admin", groups=(MASTERS, AUTHENTICATED))
NOBODY = User(name=ANONYMOUS, groups=(UNAUTHENTICATED,))


def account_name(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount."""
    return f"{_ACCOUNT}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    return _ACCOUNTS, f"{_ACCOUNTS}:{namespace}"


def account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name of the ServiceAccount with this user name."""
    if not user.startswith(_ACCOUNT):
        return None
    namespace, found, name = user.removeprefix(_ACCOUNT).partition(":")
    return (namespace, name) if found and namespace and name and ":" not in name else None
