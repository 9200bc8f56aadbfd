"""TLS contexts: certificate authorities and client certificates.

They accept exactly what kubectl accepts. Each certificate of the authority's file is a trust anchor, also an
intermediate one or the server's own. Authorities without the extensions that OpenSSL's strict mode requires are valid.
The server's name must be in the certificate's subject alternative names; the common name does not count.
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


def verifying(authority: bytes, what: str) -> ssl.SSLContext:
    """A context that trusts only these certificates, or the system's if there are none."""
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


def unverified() -> ssl.SSLContext:
    """A context without verification, for --insecure-skip-tls-verify."""
    context = _plain()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def load_certificate(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Load a client certificate into the context; the key is on disk only meanwhile."""
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
    # Without this function OpenSSL prompts for the passphrase on the terminal.
    raise _EncryptedKey


def _plain() -> ssl.SSLContext:
    # Not create_default_context(), which since Python 3.13 sets VERIFY_X509_STRICT, as kubectl does not.
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
    except ssl.SSLError as error:
        return error.reason or "it contains an invalid certificate"
    except ValueError:
        return "it is not ASCII"
    return ""


@contextmanager
def _on_disk(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """Chain and key as files, which OpenSSL requires, with mode 0600 in a private folder."""
    with tempfile.TemporaryDirectory(prefix="kubectl-ctrl-") as folder:
        chain, key = str(Path(folder) / "chain"), str(Path(folder) / "key")
        files.create(Path(chain), certificate.chain)
        files.create(Path(key), certificate.key.reveal().encode("latin-1"))
        yield chain, key
