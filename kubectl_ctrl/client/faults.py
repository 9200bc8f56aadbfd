"""aiohttp's errors as sentences with address and cause, but never a header, a query or a body."""

from __future__ import annotations

import os
import ssl
from urllib.parse import urlsplit

import aiohttp

_NOT_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNSUPPORTED_PROTOCOL", "HTTP_REQUEST"}


def explain(error: Exception, server: str, proxy: str | None) -> str:
    """One sentence: why `server` did not answer."""
    where = urlsplit(server).netloc
    via = f" through the proxy {_without_login(proxy)}" if proxy else ""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"The certificate of {where}{via} is not accepted: {_certificate_problem(error.certificate_error)}."
        case aiohttp.ClientConnectorSSLError() | ssl.SSLError():
            return f"No TLS connection to {where}{via}: {_tls_problem(error)}."
        case aiohttp.ClientConnectorDNSError():
            return f"The host name {error.host!r} cannot be resolved."
        case aiohttp.ClientProxyConnectionError():
            return f"No connection to the proxy {_without_login(proxy)}: {_system_problem(error)}."
        case aiohttp.ClientHttpProxyError():
            return f"The proxy {_without_login(proxy)} refused to connect to {where} (HTTP {error.status})."
        case aiohttp.ClientConnectorError():
            return f"No connection to {where}{via}: {_system_problem(error)}."
        case aiohttp.ServerDisconnectedError():
            return f"{where} closed the connection{via} without an answer."
        case aiohttp.ClientPayloadError():
            return f"The answer of {where}{via} was truncated."
        case aiohttp.ClientResponseError():
            return f"{where} answered{via} with something that is not HTTP."
        case OSError():
            return f"The connection to {where}{via} broke: {_system_problem(error)}."
        case _:
            return f"The connection to {where}{via} broke ({type(error).__name__})."


def is_distrust(error: Exception) -> bool:
    """Whether it is an error of certificates or of TLS."""
    return isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError | ssl.SSLError)


def _certificate_problem(error: Exception) -> str:
    problem = getattr(error, "verify_message", "") or type(error).__name__
    problem = problem.rstrip(".").replace("\n", " ")
    if "mismatch" in problem:
        return f"{problem}; --tls-server-name sets the expected name"
    if "issuer" in problem or "self-signed" in problem or "self signed" in problem:
        return f"{problem}; it was not signed by the certificate authority of the kubeconfig"
    return problem


def _tls_problem(error: Exception) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    reason = getattr(cause, "reason", None) or ""
    if reason in _NOT_TLS:
        return "the server does not speak TLS there"
    return reason.replace("_", " ").lower() or _system_problem(error)


def _system_problem(error: Exception) -> str:
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    # asyncio replaces the system's message by its own, which repeats the address.
    number = getattr(cause, "errno", None)
    return os.strerror(number) if number and number > 0 else type(cause).__name__


def _without_login(proxy: str | None) -> str:
    parts = urlsplit(proxy or "")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
