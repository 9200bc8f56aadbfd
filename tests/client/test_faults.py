from __future__ import annotations

import inspect
import ssl

import aiohttp
from aiohttp import client_exceptions

from kubectl_ctrl.client.faults import explain

SERVER = "https://10.0.0.1:6443"

# Errors of the library that cannot come from a request of ours, and why.
NOT_OURS = {"WSMessageTypeError": "web sockets only"}


def test_every_error_of_the_library_is_one_that_the_transport_catches() -> None:
    errors = [
        found for _, found in inspect.getmembers(client_exceptions, inspect.isclass) if issubclass(found, Exception)
    ]
    escaping = {found.__name__ for found in errors if not issubclass(found, (aiohttp.ClientError, OSError))}
    assert {name for name in escaping if name in client_exceptions.__all__} <= set(NOT_OURS)
    assert len(errors) > 20


def test_an_error_without_words_of_its_own_is_named() -> None:
    assert explain(aiohttp.ClientConnectionError("t0ken"), SERVER, None) == (
        "The connection to 10.0.0.1:6443 broke (ClientConnectionError)."
    )


def test_the_system_speaks_for_itself() -> None:
    assert explain(ConnectionResetError(104, "t0ken"), SERVER, None) == (
        "The connection to 10.0.0.1:6443 broke: Connection reset by peer."
    )
    assert explain(OSError("t0ken"), SERVER, "http://me:t0ken@proxy:1") == (
        "The connection to 10.0.0.1:6443 through the proxy http://proxy:1 broke: OSError."
    )


def test_tls_reasons_are_readable() -> None:
    error = ssl.SSLError(1, "t0ken")
    error.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    assert explain(error, SERVER, None) == "No TLS connection to 10.0.0.1:6443: tlsv13 alert certificate required."
