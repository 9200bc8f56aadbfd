"""Bearer tokens: of the administrator, of a table, and of ServiceAccounts.

A ServiceAccount's token is a JWT with the claims of a real one, signed with the key of this server (HS256).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, uid_of
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.auth.attributes import list_quoted
from kubectl_ctrl.sandbox.auth.users import (
    ADMIN,
    AUTHENTICATED,
    NOBODY,
    UNAUTHENTICATED,
    User,
    account_groups,
    account_name,
)
from kubectl_ctrl.sandbox.storage import Storage
from kubectl_ctrl.value import Unshown, Value, field, replace

ISSUER = "https://kubernetes.default.svc.cluster.local"
_OF_SECRETS = "kubernetes/serviceaccount"
_CLAIM = "kubernetes.io/serviceaccount/"
_LEEWAY = 60.0  # seconds that clocks may differ
_MOST_TOKENS = 1_000  # whose signature is remembered
_BOUND = {"pod": "pods", "secret": "secrets", "node": "nodes"}


class Authenticator(Value, kw_only=True):
    """The credentials that a server accepts."""

    key: Unshown[bytes]  # signs the tokens of ServiceAccounts
    admin_token: Unshown[str] = ""
    tokens: Unshown[Mapping[str, User]] = field(default_factory=dict)
    anonymous: bool = True  # requests without a token are those of system:anonymous
    ca: Unshown[bytes] = b""  # the certificate authority that Secrets with tokens name, as PEM


class BadToken(Exception):
    """The token is of nobody; the message is that of a TokenReview."""

    def __init__(self, why: str = "") -> None:
        super().__init__(f"[invalid bearer token, {why}]" if why else "invalid bearer token")


class Binding(Value, frozen=True):
    """The object whose deletion ends a token; of a pod also its node."""

    kind: str  # pod, secret or node
    name: str
    uid: str
    node: tuple[str, str] = ("", "")


class Tokens:
    """Issues and reads tokens."""

    def __init__(self, accepted: Authenticator, storage: Storage, clock: Clock, new_id: Callable[[], str]) -> None:
        self._storage = storage
        self._clock = clock
        self._new_id = new_id
        self._accepted = accepted
        self._users = {token: _authenticated(user) for token, user in accepted.tokens.items()}
        if accepted.admin_token:
            self._users[accepted.admin_token] = ADMIN
        self._signed: dict[str, Obj] = {}

    def user_of_request(self, headers: Mapping[str, str]) -> User:
        """Raises the 401 of a wrong token. The names of the headers are lower-case."""
        scheme, _, token = headers.get("authorization", "").strip().partition(" ")
        token = token.partition(" ")[0]
        if scheme.lower() == "bearer" and token:
            try:
                return self.user_of(token)
            except BadToken as error:
                raise answers.unauthorized() from error
        if not self._accepted.anonymous:
            raise answers.unauthorized()
        return NOBODY

    def user_of(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> User:
        known = self._users.get(token)
        return self._account(token, audiences) if known is None else known

    # -- reading the tokens of ServiceAccounts

    def _account(self, token: str, audiences: tuple[str, ...]) -> User:
        claims = self._claims(token)
        if claims.get("iss") == _OF_SECRETS:
            return self._of_secret(token, claims)
        named = claims["aud"]
        if not set(named) & set(audiences):
            raise BadToken(
                f"token audiences {list_quoted(named)} is invalid for the target audiences {list_quoted(audiences)}"
            )
        now = self._clock.now()
        if now > claims["exp"] + _LEEWAY:
            raise BadToken("service account token has expired")
        place = claims["kubernetes.io"]
        namespace, account = place["namespace"], place["serviceaccount"]
        self._check_account(namespace, account["name"], account["uid"])
        for kind in _BOUND:
            # The node of a pod is for information.
            if kind in place and not (kind == "node" and "pod" in place):
                self._check_bound(kind, namespace, place[kind])
        return _account_user(namespace, account["name"], account["uid"], _extra(claims["jti"], place))

    def _claims(self, token: str) -> Obj:
        """The content of a token with a valid signature."""
        known = self._signed.get(token)
        if known is not None:
            return known
        signed, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
            raise BadToken
        claims: Obj = json.loads(_unpacked(signed.partition(".")[2]))
        if len(self._signed) >= _MOST_TOKENS:
            self._signed.clear()
        self._signed[token] = claims
        return claims

    def _check_account(self, namespace: str, name: str, uid: str) -> None:
        account = self._storage.get("serviceaccounts", Key(namespace, name))
        if account is None:
            raise BadToken(f'serviceaccounts "{name}" not found')
        if uid_of(account) != uid:
            raise BadToken(f"service account UID ({uid_of(account)}) does not match claim ({uid})")

    def _check_bound(self, kind: str, namespace: str, claim: Obj) -> None:
        bound = self._storage.get(_BOUND[kind], Key("" if kind == "node" else namespace, claim["name"]))
        if bound is None:
            raise BadToken("service account token has been invalidated")
        if uid_of(bound) != claim["uid"]:
            what = {"pod": "pod ref", "secret": "secret ref", "node": "node ref"}[kind]
            why = f"UID ({uid_of(bound)}) does not match service account {what} claim ({claim['uid']})"
            raise BadToken(f"{'node' if kind == 'node' else kind} {why}")

    def _of_secret(self, token: str, claims: Obj) -> User:
        namespace, name = claims[f"{_CLAIM}namespace"], claims[f"{_CLAIM}service-account.name"]
        secret = self._storage.get("secrets", Key(namespace, claims[f"{_CLAIM}secret.name"]))
        if secret is None or is_deleting(secret):
            raise BadToken("Token has been invalidated")
        if (secret.get("data") or {}).get("token") != base64.b64encode(token.encode()).decode():
            raise BadToken("Token does not match server's copy")
        uid = claims[f"{_CLAIM}service-account.uid"]
        self._check_account(namespace, name, uid)
        return _account_user(namespace, name, uid, {})

    # -- issuing

    def issue(self, account: Obj, audiences: list[str], seconds: int, bound: Binding | None) -> str:
        """A token of a stored ServiceAccount."""
        meta, now = account["metadata"], int(self._clock.now())
        place: Obj = {"namespace": meta["namespace"], "serviceaccount": {"name": meta["name"], "uid": meta["uid"]}}
        if bound is not None:
            place[bound.kind] = {"name": bound.name, "uid": bound.uid}
            if bound.node[0]:
                place["node"] = {key: text for key, text in zip(("name", "uid"), bound.node, strict=True) if text}
        return self._sign(
            {
                "aud": audiences,
                "exp": now + seconds,
                "iat": now,
                "iss": ISSUER,
                "jti": self._new_id(),
                "kubernetes.io": place,
                "nbf": now,
                "sub": account_name(meta["namespace"], meta["name"]),
            }
        )

    def issue_for(self, secret: str, account: Obj) -> str:
        """The token in a Secret: it does not expire."""
        meta = account["metadata"]
        return self._sign(
            {
                "iss": _OF_SECRETS,
                f"{_CLAIM}namespace": meta["namespace"],
                f"{_CLAIM}secret.name": secret,
                f"{_CLAIM}service-account.name": meta["name"],
                f"{_CLAIM}service-account.uid": meta["uid"],
                "sub": account_name(meta["namespace"], meta["name"]),
            }
        )

    def _sign(self, claims: Obj) -> str:
        signed = f"{_packed({'alg': 'HS256', 'typ': 'JWT'})}.{_packed(claims)}"
        return f"{signed}.{self._signature(signed)}"

    def _signature(self, signed: str) -> str:
        return _encoded(hmac.new(self._accepted.key, signed.encode(), hashlib.sha256).digest())

    def __repr__(self) -> str:
        return f"Tokens(known={len(self._users)})"


def _packed(value: Any) -> str:
    return _encoded(answers.encode(value))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


def _account_user(namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]]) -> User:
    groups = (*account_groups(namespace), AUTHENTICATED)
    return User(name=account_name(namespace, name), uid=uid, groups=groups, extra=extra)


def _extra(token_id: str, place: Obj) -> dict[str, tuple[str, ...]]:
    extra = {"credential-id": (f"JTI={token_id}",)}
    for kind in ("pod", "node"):
        extra |= {f"{kind}-{key}": (text,) for key, text in place.get(kind, {}).items()}
    return {f"authentication.kubernetes.io/{key}": values for key, values in extra.items()}
