"""The credentials of all requests: one grant, kept until it expires or the server answers 401.

Concurrent requests share one fetch. A request that stops waiting does not cancel it, so the deadline of one call never
aborts a login in the browser. After a credential plugin or identity provider has failed, its error is repeated for a
while instead of trying again for each call, because otherwise the login would open over and over.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from kubectl_ctrl.client.auth.execplugin import ExecPlugin
from kubectl_ctrl.client.auth.grants import Grant, GrantSource, KubeconfigCredentials, TokenFile
from kubectl_ctrl.client.auth.oidc import Oidc
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import ConfigError, CredentialsError, Refused
from kubectl_ctrl.kubeconfig.resolution import Resolved, ca_fingerprint, load_again

_log = logging.getLogger(__name__)

# Between two attempts to replace a grant after a 401: the plugin must not run once for each rejected call.
_RENEWAL_PAUSE = 10.0
# Between two attempts after a failure: doubled each time, until one succeeds or the kubeconfig changes.
_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 300.0
# Meanwhile, how often the kubeconfig is checked for changes.
_KUBECONFIG_PAUSE = 1.0


class _Failure:
    """The last failure, and when the source may be tried again (elapsed time)."""

    def __init__(self, error: CredentialsError, now: float, pause: float) -> None:
        self.error = error
        self.pause = pause
        self.until = now + pause
        self.kubeconfig_at = now + _KUBECONFIG_PAUSE

    def repeated(self, now: float) -> CredentialsError:
        left = math.ceil(self.until - now)
        step = f"{self.error.next_step}; the next try is in {left} s, or at once when the kubeconfig changes"
        return CredentialsError(self.error.message, tried=self.error.tried, next_step=step)


class Credentials:
    """The grants of one user, renewed as long as the kubeconfig still has the same cluster."""

    def __init__(self, resolved: Resolved, *, clock: Clock, environ: Mapping[str, str], interactive: bool) -> None:
        self._resolved = resolved
        self._clock = clock
        self._environ = environ
        self._interactive = interactive
        self._target = _target(resolved)
        self._source = self._source_of(resolved)
        self._grant: Grant | None = None
        self._fetching: asyncio.Task[Grant | None] | None = None  # at most one, shared by all waiting requests
        self._replaced_at: float | None = None
        self._failure: _Failure | None = None  # the last one; None after a success

    async def current(self) -> Grant:
        """A valid grant. CredentialsError, or Refused if the kubeconfig has another cluster now."""
        while self._grant is None or self._clock.now() >= self._grant.expires:
            # A new grant is used once even if it seems expired, because clocks differ.
            if (grant := await self._shared(self._obtain)) is not None:
                return grant
        return self._grant

    async def renew(self, refused: Grant) -> Grant | None:
        """Another grant after a 401; None if there is none that the server has not already rejected."""
        if self._grant is not None and self._grant is not refused:
            return self._grant
        recently = self._replaced_at is not None and self._clock.elapsed() - self._replaced_at < _RENEWAL_PAUSE
        if recently and self._fetching is None:
            return None
        return await self._shared(lambda: self._replace(refused))

    async def close(self) -> None:
        """Stop the fetch; requests that wait for it get a CredentialsError."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])

    async def _shared(self, fetch: Callable[[], Coroutine[Any, Any, Grant | None]]) -> Grant | None:
        if self._fetching is None:
            self._check_pause()
            self._fetching = asyncio.create_task(fetch(), name="credentials")
            self._fetching.add_done_callback(self._fetched)
        task = self._fetching
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # The shared task may be cancelled by `close`, the waiting one by its own caller.
            current = asyncio.current_task()
            if task.cancelled() and not (current and current.cancelling()):
                raise CredentialsError("The connection was closed while credentials were being fetched.") from None
            raise

    def _fetched(self, task: asyncio.Task[Grant | None]) -> None:
        self._fetching = None
        if task.cancelled():
            return
        error = task.exception()  # retrieved even if nobody waits, or asyncio logs it
        if error is None:
            self._failure = None
        elif isinstance(error, CredentialsError) and self._source.costly:
            pause = min(2 * self._failure.pause, _LONGEST_PAUSE) if self._failure is not None else _FIRST_PAUSE
            self._failure = _Failure(error, self._clock.elapsed(), pause)

    def _check_pause(self) -> None:
        """Repeat the last error during the pause, unless the kubeconfig has changed."""
        failure, now = self._failure, self._clock.elapsed()
        if failure is None or now >= failure.until:
            return
        if now >= failure.kubeconfig_at:
            failure.kubeconfig_at = now + _KUBECONFIG_PAUSE
            if self._adopt():
                self._failure = None
                return
        raise failure.repeated(now)

    async def _obtain(self) -> Grant:
        if self._grant is not None and self._source.shared:
            self._adopt()
        try:
            grant = await self._from_source()
        except CredentialsError:
            if not self._adopt():
                raise
            grant = await self._from_source()
        self._grant = grant
        return grant

    async def _replace(self, refused: Grant) -> Grant | None:
        self._replaced_at = self._clock.elapsed()
        self._adopt()
        grant = await self._from_source()
        if grant.proves_as(refused):
            return None
        self._grant = grant
        return grant

    async def _from_source(self) -> Grant:
        try:
            return await self._source.obtain()
        except CredentialsError:
            raise
        except ConfigError as error:  # a file that the user entry names
            raise CredentialsError(error.message, tried=error.tried, next_step=error.next_step) from None

    def _adopt(self) -> bool:
        """Read the kubeconfig again; True if its user entry has changed, and is used from now on."""
        try:
            fresh = load_again(self._resolved)
            target = _target(fresh)
        except ConfigError as error:
            _log.warning(
                "The kubeconfig could not be read again; the credentials are unchanged",
                extra={"action": "credentials.reload_failed", "error": error.message},
            )
            return False
        if target != self._target:
            raise Refused(
                f"The context {self._resolved.context!r} now means another cluster or certificate authority.",
                tried=f"started with {self._resolved.server}, now {fresh.server}",
                next_step="restart if this is the intended cluster",
            )
        if fresh.auth == self._resolved.auth:
            return False
        self._source = self._source_of(fresh)
        self._resolved = fresh
        return True

    def _source_of(self, resolved: Resolved) -> GrantSource:
        auth = resolved.auth
        if auth.provider not in ("", "oidc"):
            raise CredentialsError(
                f"The auth-provider {auth.provider!r} of user {resolved.user!r} is not supported, also not by kubectl.",
                next_step="configure a credential plugin (exec) for the user",
            )
        if auth.token_file:
            return TokenFile(resolved, clock=self._clock)
        if auth.token or auth.username or not resolved.server.startswith("https://"):
            return KubeconfigCredentials(resolved)
        if auth.provider:
            return Oidc(resolved, clock=self._clock)
        if auth.has_certificate:
            return KubeconfigCredentials(resolved)
        if auth.exec:
            return ExecPlugin(resolved, environ=self._environ, interactive=self._interactive)
        who = f"The user {resolved.user!r} has no credentials" if resolved.user else "No credentials are configured"
        raise CredentialsError(f"{who} for {resolved.server}.", next_step="log in, or give --token or --user")

    def __repr__(self) -> str:
        return f"Credentials({self._source!r}, fetching={self._fetching is not None})"


def _target(resolved: Resolved) -> tuple[str, str, bool]:
    """The identity of the cluster, which must not change while this process runs."""
    return resolved.server, ca_fingerprint(resolved), resolved.tls.insecure
