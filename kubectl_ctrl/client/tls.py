"""TLS contexts: whom we trust, and the certificate that we show.

Kept as lenient and as strict as kubectl: any certificate of the authority's file is an anchor, also an intermediate one
or the server's own; authorities without the extensions that OpenSSL's strict mode wants are taken; a name must stand in
the certificate's alternative names, never in its common name alone.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from kubectl_ctrl import files
from kubectl_ctrl.errors import ConfigError, CredentialsError
from kubectl_ctrl.kubeconfig.secret import Secret
from kubectl_ctrl.value import Unshown, Value

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class Certificate(Value, kw_only=True):
    """A client certificate with its key, both PEM."""

    chain: Unshown[bytes]
    key: Secret
    origin: str  # for messages: "user 'dev'", "the credential plugin 'aws'"


def trusting(authority: bytes, what: str) -> ssl.SSLContext:
    """A client context that trusts these certificates alone, or the system's when there are none."""
    context = _plain()
    if not authority:
        context.load_default_certs()
        return context
    found = _CERTIFICATE.findall(authority)
    problems = [problem for pem in found if (problem := _add(context, pem))]
    if len(problems) == len(found):
        why = problems[0] if problems else "it contains no PEM certificate"
        raise ConfigError(f"The {what} cannot be used: {why}.")
    return context


def trusting_anyone() -> ssl.SSLContext:
    """A client context that checks nothing, for --insecure-skip-tls-verify."""
    context = _plain()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def show(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Make the context present this certificate; the key is on disk only for as long as that takes."""
    with _on_disk(certificate) as (chain, key):
        try:
            context.load_cert_chain(chain, key, password=_encrypted)
        except _EncryptedKey:
            raise CredentialsError(
                f"The client key of {certificate.origin} is encrypted.", next_step="store it without a passphrase"
            ) from None
        except (ssl.SSLError, OSError) as error:
            mismatch = isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH"
            why = "do not match" if mismatch else "are not both PEM"
            raise CredentialsError(f"The client certificate and key of {certificate.origin} {why}.") from None


class _EncryptedKey(Exception):
    pass


def _encrypted() -> NoReturn:
    # Without this OpenSSL would ask for the pass phrase on the terminal.
    raise _EncryptedKey


def _plain() -> ssl.SSLContext:
    # Not create_default_context(): from Python 3.13 on it is stricter than kubectl.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["http/1.1"])
    return context


def _add(context: ssl.SSLContext, pem: bytes) -> str:
    try:
        context.load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        return (
            (error.reason or "it contains an invalid certificate")
            if isinstance(error, ssl.SSLError)
            else "it is not ASCII"
        )
    return ""


@contextmanager
def _on_disk(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """The two files that OpenSSL insists on, in a folder and with modes of our own."""
    with tempfile.TemporaryDirectory(prefix="kubectl-ctrl-") as folder:
        chain, key = str(Path(folder) / "chain"), str(Path(folder) / "key")
        files.create(Path(chain), certificate.chain)
        files.create(Path(key), certificate.key.reveal().encode("latin-1"))
        yield chain, key
