"""OpenID Connect tokens: used until they expire, then refreshed by the identity provider.

TLS to the provider is always verified. Nothing is written into the kubeconfig: a new refresh token is kept in memory,
and logged, because kubectl still has the old one.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus, urlsplit

import aiohttp

from kubectl_ctrl.client.auth.grants import Grant, bearer, with_certificate
from kubectl_ctrl.client.tls import verifying
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CredentialsError
from kubectl_ctrl.kubeconfig import proxies
from kubectl_ctrl.kubeconfig.resolution import Resolved, read_file
from kubectl_ctrl.kubeconfig.secret import Secret

_log = logging.getLogger(__name__)

# A token this close to its expiry may have expired when it arrives.
_MARGIN = 10.0
_TIMEOUT = 30.0
_MAX_ANSWER = 1 << 20


class Oidc:
    """The `oidc` auth-provider of a user entry."""

    shared = True
    costly = True

    def __init__(self, resolved: Resolved, *, clock: Clock) -> None:
        self._resolved = resolved
        self._clock = clock
        self._config = resolved.auth.provider_config
        self._origin = f"auth-provider oidc of user {resolved.user!r}"
        for key in ("idp-issuer-url", "client-id"):
            if not self._config.get(key):
                raise CredentialsError(f"The {self._origin} has no {key}.")
        self._issuer = self._secure(self._config["idp-issuer-url"].rstrip("/"), "idp-issuer-url")
        self._id_token = Secret(self._config.get("id-token", ""))
        self._refresh_token = Secret(self._config.get("refresh-token", ""))
        self._handed_out = False

    async def obtain(self) -> Grant:
        expires = self._expiry(self._id_token) if self._id_token else 0.0
        # A second request before its expiry means that the server rejected the token.
        if self._handed_out or expires <= self._clock.now():
            await self._refresh()
            expires = self._expiry(self._id_token)
        self._handed_out = True
        return with_certificate(Grant(authorization=bearer(self._id_token.reveal()), expires=expires), self._resolved)

    async def _refresh(self) -> None:
        if not self._refresh_token:
            raise CredentialsError(
                f"The id-token of {self._origin} has expired, and there is no refresh-token.", next_step="log in again"
            )
        try:
            async with (
                self._clock.timeout(_TIMEOUT),
                aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), timeout=aiohttp.ClientTimeout()) as session,
            ):
                answer = await self._exchange(session)
        except TimeoutError:
            raise CredentialsError(f"{self._issuer} did not answer within {_TIMEOUT:.0f} s.") from None
        except aiohttp.ClientError as error:
            raise CredentialsError(f"{self._issuer} cannot be reached.", tried=type(error).__name__) from None
        self._take(answer)

    async def _exchange(self, session: aiohttp.ClientSession) -> Mapping[str, Any]:
        tls = self._tls()
        discovered = await self._call(session, "GET", f"{self._issuer}/.well-known/openid-configuration", tls)
        if discovered is None:
            raise CredentialsError(f"{self._issuer} has no openid-configuration.", next_step="check idp-issuer-url")
        endpoint = self._secure(str(discovered.get("token_endpoint") or ""), "token_endpoint")
        client, password = self._config["client-id"], self._config.get("client-secret", "")
        form = {"grant_type": "refresh_token", "refresh_token": self._refresh_token.reveal()}
        # Providers differ in where they expect the client's id and secret; the header is tried first, as in kubectl.
        pair = f"{quote_plus(client)}:{quote_plus(password)}".encode()
        header = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        answer = await self._call(session, "POST", endpoint, tls, headers=header, data=form)
        if answer is None:
            form |= {"client_id": client} | ({"client_secret": password} if password else {})
            answer = await self._call(session, "POST", endpoint, tls, data=form)
        if answer is None:
            raise CredentialsError(
                f"{self._issuer} refused the refresh-token of {self._origin}.", next_step="log in again"
            )
        return answer

    async def _call(
        self, session: aiohttp.ClientSession, method: str, url: str, tls: ssl.SSLContext, **options: Any
    ) -> Mapping[str, Any] | None:
        """The JSON object of a 200; None for any other status, whose body may repeat the secrets that were sent."""
        proxy = proxies.from_environ(url, self._resolved.origin.environ)
        async with session.request(
            method, url, ssl=tls, proxy=proxy, allow_redirects=method == "GET", **options
        ) as response:
            if response.status != 200:
                return None
            try:
                answer = json.loads(await response.content.read(_MAX_ANSWER))
            except ValueError:
                answer = None
        if not isinstance(answer, dict):
            raise CredentialsError(f"{self._issuer} answered something that is not a JSON object.")
        return answer

    def _take(self, answer: Mapping[str, Any]) -> None:
        token, refresh = answer.get("id_token"), answer.get("refresh_token")
        if not isinstance(token, str) or not token:
            raise CredentialsError(
                f"{self._issuer} refreshed without an id_token.", next_step="log in again with the scope openid"
            )
        self._id_token = Secret(token)
        if isinstance(refresh, str) and refresh and Secret(refresh) != self._refresh_token:
            self._refresh_token = Secret(refresh)
            _log.warning(
                "The identity provider replaced the refresh token; kubectl still has the old one and may need a login",
                extra={"action": "oidc.refresh_token_replaced", "user": self._resolved.user, "issuer": self._issuer},
            )

    def _tls(self) -> ssl.SSLContext:
        what = f"idp-certificate-authority of {self._origin}"
        name, data = self._config.get("idp-certificate-authority"), self._config.get("idp-certificate-authority-data")
        try:
            authority = base64.b64decode(data, validate=True) if data else b""
        except (binascii.Error, ValueError):
            raise CredentialsError(f"The {what} is not valid base64.") from None
        return verifying(authority or (read_file(name, what) if name else b""), what)

    def _secure(self, url: str, what: str) -> str:
        if not url.startswith("https://") or not urlsplit(url).hostname:
            raise CredentialsError(f"The {what} of {self._origin} is not an https URL.")
        return url

    def _expiry(self, token: Secret) -> float:
        """The time until which the token is used. Its signature is verified by the server."""
        try:
            _, payload, _ = token.reveal().split(".")
            claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            return float(claims["exp"]) - _MARGIN
        except (ValueError, KeyError, TypeError):
            raise CredentialsError(f"The id-token of {self._origin} is not a JWT with an expiry time.") from None

    def __repr__(self) -> str:
        return f"Oidc({self._issuer!r})"
