"""The network transport: TLS, proxies, credentials and deadlines around aiohttp."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import quote, unquote, urlencode, urlsplit

import aiohttp
from yarl import URL

from kubectl_ctrl.client.auth.credentials import Credentials
from kubectl_ctrl.client.auth.grants import Grant
from kubectl_ctrl.client.faults import explain, is_distrust
from kubectl_ctrl.client.pools import Pool, Pools, RequestProgress, fail_when_lost
from kubectl_ctrl.client.streams import NetworkStream
from kubectl_ctrl.client.tls import Certificate, load_certificate, unverified, verifying
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.kubeconfig.resolution import Impersonation, Resolved, read_ca
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, NoAnswer, NotTrusted, TooSlow

# The characters of header names, except the percent sign, which escapes all others.
_HEADER_SAFE = "!#$&'*+-.^_`|~"


class NetworkTransport:
    """One server over aiohttp, created inside a running event loop. Its address and certificate authority never change.

    If the server does not answer, `remedy` is called for the command that starts it, or "".
    """

    def __init__(
        self, resolved: Resolved, credentials: Credentials, *, clock: Clock, remedy: Callable[[], str] = str
    ) -> None:
        self._resolved = resolved
        self._credentials = credentials
        self._clock = clock
        self._remedy = remedy
        self._authority = read_ca(resolved)
        self._tls: ssl.SSLContext | None = None
        self._certificate: Certificate | None = None
        self._impersonation = impersonation_headers(resolved.impersonate)
        self._proxy, self._proxy_headers = _proxy(resolved.proxy_url)
        if resolved.server.startswith("https://"):
            self._context(None)  # an invalid certificate authority is an error now, not at the first request
        self._pools = Pools(clock)
        self._closed = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        trip = RequestProgress()
        async with self._bounded(request, trip):
            grant = await self._credentials.current()
            answer = await self._call(request, grant, trip)
            if answer.status == 401 and (fresh := await self._credentials.renew(grant)) is not None:
                answer = await self._call(request, fresh, trip)
        return answer

    async def open(self, request: HttpRequest) -> NetworkStream:
        trip = RequestProgress()
        async with self._bounded(request, trip):
            grant = await self._credentials.current()
            stream = await self._stream(request, grant, trip)
            if stream.status == 401:
                try:
                    fresh = await self._credentials.renew(grant)
                except BaseException:
                    await stream.close()
                    raise
                if fresh is not None:
                    await stream.close()
                    stream = await self._stream(request, fresh, trip)
        return stream

    async def close(self) -> None:
        """Close all connections, also those in use; may be called twice."""
        if not self._closed:
            self._closed = True
            await self._credentials.close()
            await self._pools.close()

    @asynccontextmanager
    async def _bounded(self, request: HttpRequest, trip: RequestProgress) -> AsyncIterator[None]:
        """Enforce the deadline of one request, and convert its errors."""
        limits = [limit for limit in (request.deadline, self._resolved.request_timeout) if limit is not None]
        deadline = min(limits, default=None)
        try:
            async with self._clock.timeout(deadline):
                if self._closed:
                    raise NoAnswer("The connection is closed.", sent=False)
                yield
        except TimeoutError:
            if trip.sent:
                # The cause of the timeout, such as a lost network, may affect all idle connections too.
                self._pools.distrust()
            message = f"{urlsplit(self._resolved.server).netloc} did not answer within {deadline:g} s."
            raise TooSlow(message, sent=trip.sent, remedy=self._remedy()) from None

    async def _call(self, request: HttpRequest, grant: Grant, trip: RequestProgress) -> HttpResponse:
        async with self._pools.taken() as pool:
            try:
                response = await self._request(pool, request, grant, trip)
                async with response:
                    forget = fail_when_lost(response)
                    try:
                        body = await response.read()
                    finally:
                        forget()
            except (aiohttp.ClientError, OSError) as error:
                raise self._no_answer(error, trip) from None
            except asyncio.CancelledError:
                # When a session is closed, aiohttp cancels tasks that wait for a connection. They must not take that
                # for their own cancellation.
                task = asyncio.current_task()
                if self._closed and not (task and task.cancelling()):
                    raise NoAnswer("The connection was closed.", sent=trip.sent) from None
                raise
        return HttpResponse(status=response.status, headers=_headers(response), body=body)

    async def _stream(self, request: HttpRequest, grant: Grant, trip: RequestProgress) -> NetworkStream:
        pool = self._pools.take(stream=True)
        try:
            response = await self._request(pool, request, grant, trip)
        except (aiohttp.ClientError, OSError) as error:
            self._pools.give_back(pool)
            raise self._no_answer(error, trip) from None
        except BaseException:
            self._pools.give_back(pool)
            raise
        return NetworkStream(
            response,
            _headers(response),
            clock=self._clock,
            silence=request.silence,
            explain=lambda error: explain(error, self._resolved.server, self._resolved.proxy_url),
            on_close=lambda: self._pools.give_back(pool),
        )

    async def _request(
        self, pool: Pool, request: HttpRequest, grant: Grant, trip: RequestProgress
    ) -> aiohttp.ClientResponse:
        trip.sent = False
        https = self._resolved.server.startswith("https://")
        headers = [*request.headers.items(), *self._impersonation]
        if not self._resolved.disable_compression:
            headers.append(("Accept-Encoding", "gzip"))
        if grant.authorization is not None:
            headers.append(("Authorization", grant.authorization.reveal()))
        if not https:
            headers += self._proxy_headers.items()
        target = request.path + (f"?{urlencode(request.query)}" if request.query else "")
        return await pool.session.request(
            request.method,
            URL(self._resolved.server + target, encoded=True),
            headers=headers,
            data=request.body,
            ssl=self._context(grant.certificate) if https else True,
            server_hostname=self._resolved.tls.server_name or None,
            proxy=self._proxy,
            proxy_headers=self._proxy_headers if https and self._proxy else None,
            allow_redirects=False,
            trace_request_ctx=trip,
        )

    def _context(self, certificate: Certificate | None) -> ssl.SSLContext:
        """The TLS context with this client certificate; a new certificate means a new context and new connections."""
        if self._tls is None or certificate != self._certificate:
            what = f"certificate authority of cluster {self._resolved.cluster!r}"
            context = unverified() if self._resolved.tls.insecure else verifying(self._authority, what)
            if certificate is not None:
                load_certificate(context, certificate)
            self._tls, self._certificate = context, certificate
        return self._tls

    def _no_answer(self, error: Exception, trip: RequestProgress) -> NoAnswer:
        message = explain(error, self._resolved.server, self._resolved.proxy_url)
        fault = NotTrusted if is_distrust(error) else NoAnswer
        return fault(message, sent=trip.sent, remedy=self._remedy())

    def __repr__(self) -> str:
        calls, streams = self._pools.busy
        return f"NetworkTransport({self._resolved.server}, calls={calls}, streams={streams}, closed={self._closed})"


def impersonation_headers(impersonate: Impersonation) -> list[tuple[str, str]]:
    """The headers for impersonation."""
    if not impersonate.user:
        return []
    headers = [("Impersonate-User", impersonate.user)]
    headers += [("Impersonate-Uid", impersonate.uid)] if impersonate.uid else []
    headers += [("Impersonate-Group", group) for group in impersonate.groups]
    for key, values in impersonate.extra:
        name = f"Impersonate-Extra-{quote(key, safe=_HEADER_SAFE)}"
        headers += [(name, value) for value in values]
    return headers


def _proxy(url: str | None) -> tuple[str | None, dict[str, str]]:
    """The proxy's URL without a login, and the login as a header."""
    if url is None:
        return None, {}
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    if not at:
        return url, {}
    encoded = base64.b64encode(unquote(login).encode()).decode()
    return f"{parts.scheme}://{host}", {"Proxy-Authorization": f"Basic {encoded}"}


def _headers(response: aiohttp.ClientResponse) -> Mapping[str, str]:
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers
