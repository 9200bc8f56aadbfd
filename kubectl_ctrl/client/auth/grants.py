"""The credentials of a request, and the sources that need neither a program nor a network."""

from __future__ import annotations

import base64
from math import inf
from typing import Protocol

from kubectl_ctrl.client.tls import Certificate
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import ConfigError, CredentialsError
from kubectl_ctrl.kubeconfig.resolution import AuthSettings, Resolved, read_file
from kubectl_ctrl.kubeconfig.secret import Secret
from kubectl_ctrl.value import Value, replace

# A token file is read again after this time; the kubelet renews a pod's token long before the old one expires.
_TOKEN_FILE_LIFE = 50.0


class Grant(Value, kw_only=True):
    """An Authorization header, a client certificate, or both."""

    authorization: Secret | None = None
    certificate: Certificate | None = None
    expires: float = inf  # wall time

    def proves_as(self, other: Grant) -> bool:
        """Whether both have the same credentials, so that a server rejects both."""
        return (self.authorization, self.certificate) == (other.authorization, other.certificate)


class GrantSource(Protocol):
    # Other programs renew it too, and write the result into the kubeconfig: it is read first.
    shared: bool
    # It runs a program, contacts a provider, or prompts the user.
    costly: bool

    async def obtain(self) -> Grant:
        """A new grant, or CredentialsError."""


class KubeconfigCredentials:
    """Credentials in the kubeconfig or in files that it names; the files are read again each time."""

    shared = False
    costly = False

    def __init__(self, resolved: Resolved) -> None:
        self._resolved = resolved

    async def obtain(self) -> Grant:
        auth = self._resolved.auth
        header = bearer(auth.token.reveal()) if auth.token else _basic(auth)
        return Grant(authorization=header, certificate=certificate_of(self._resolved))

    def __repr__(self) -> str:
        return f"KubeconfigCredentials(user={self._resolved.user!r})"


class TokenFile:
    """A token in a file that another program renews. Without the file, the last token or the kubeconfig's is used."""

    shared = False
    costly = False

    def __init__(self, resolved: Resolved, *, clock: Clock) -> None:
        self._resolved = resolved
        self._clock = clock
        self._last = resolved.auth.token

    async def obtain(self) -> Grant:
        auth = self._resolved.auth
        try:
            content = read_file(auth.token_file, f"tokenFile of user {self._resolved.user!r}")
            token = Secret(content.decode().strip())
        except (ConfigError, UnicodeDecodeError) as error:
            if self._last is None:
                why = error.message if isinstance(error, ConfigError) else f"{auth.token_file!r} contains no token."
                raise CredentialsError(why) from None
            token = self._last
        self._last = token or self._last
        if not self._last:
            raise CredentialsError(f"The token file {auth.token_file!r} of user {self._resolved.user!r} is empty.")
        return Grant(
            authorization=bearer(self._last.reveal()),
            certificate=certificate_of(self._resolved),
            expires=self._clock.now() + _TOKEN_FILE_LIFE,
        )

    def __repr__(self) -> str:
        return f"TokenFile({self._resolved.auth.token_file!r})"


def bearer(token: str) -> Secret:
    """The header for a token. A newline in it would inject another header."""
    if not token.isascii() or not token.isprintable():
        raise CredentialsError("The bearer token contains characters that are not allowed in a header.")
    return Secret(f"Bearer {token}")


def certificate_of(resolved: Resolved) -> Certificate | None:
    """The client certificate of the user entry or the flags."""
    auth = resolved.auth
    if not auth.has_certificate:
        return None
    origin = f"user {resolved.user!r}"
    chain = auth.certificate_data or read_file(auth.certificate_file, f"client-certificate of {origin}")
    key = auth.key_data or Secret(read_file(auth.key_file, f"client-key of {origin}").decode("latin-1"))
    return Certificate(chain=chain, key=key, origin=origin)


def with_certificate(grant: Grant, resolved: Resolved) -> Grant:
    """The grant with the kubeconfig's certificate."""
    return replace(grant, certificate=certificate_of(resolved))


def _basic(auth: AuthSettings) -> Secret | None:
    if not auth.username:
        return None
    pair = f"{auth.username}:{auth.password.reveal() if auth.password else ''}".encode()
    return Secret(f"Basic {base64.b64encode(pair).decode()}")
