"""The certificates of one server: its own authority, and a certificate for the names of this machine."""

from __future__ import annotations

import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from kubectl_ctrl import files

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

AUTHORITY, SERVER, AUTHORITY_KEY, SERVER_KEY = "ca.crt", "tls.crt", "ca.key", "tls.key"
NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADDRESSES = ("127.0.0.1", "::1")
_VALID = timedelta(days=3650)  # kubeconfigs have a copy of the authority
_RENEWED = timedelta(days=30)  # this long before its end
_BEFORE = timedelta(hours=1)  # clocks differ


def server_context(folder: Path, now: float) -> ssl.SSLContext:
    """TLS for the server, with the certificates in the folder; missing and old ones are made."""
    if not _usable(folder, now):
        _make(folder, datetime.fromtimestamp(now, UTC))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(folder / SERVER, folder / SERVER_KEY)
    return context


def _usable(folder: Path, now: float) -> bool:
    """Both certificates are made at the same time, and end at the same time."""
    with suppress(OSError, ssl.SSLError):
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(folder / SERVER, folder / SERVER_KEY)
        authority = ssl.create_default_context(cafile=str(folder / AUTHORITY)).get_ca_certs()[0]
        end = authority["notAfter"]
        assert isinstance(end, str)
        return ssl.cert_time_to_seconds(end) - now > _RENEWED.total_seconds()
    return False


def _make(folder: Path, now: datetime) -> None:
    # Takes 90 ms to import, which only the first start of a server spends.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    authority_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("kubectl-ctrl sandbox", authority_key, now, None)
    server = _certificate("kube-apiserver", server_key, now, (authority, authority_key))
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private = serialization.PrivateFormat.PKCS8
    # From the first to the last file, the server's key does not fit its certificate: a kill between them is found.
    for name, content in (
        (SERVER_KEY, server_key.private_bytes(pem, private, plain)),
        (AUTHORITY_KEY, authority_key.private_bytes(pem, private, plain)),
        (AUTHORITY, authority.public_bytes(pem)),
        (SERVER, server.public_bytes(pem)),
    ):
        files.replace(folder / name, content, sync=False)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    issuer: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None,
) -> x509.Certificate:
    """A certificate of this key: an authority without an issuer, else a server."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    parent, signer = (issuer[0].subject, issuer[1]) if issuer else (subject, key)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        x509.CertificateBuilder(parent, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _VALID)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(_usage(signs=issuer is None), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if issuer:
        names = [*map(x509.DNSName, NAMES), *(x509.IPAddress(ip_address(address)) for address in ADDRESSES)]
        purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = builder.add_extension(purpose, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
