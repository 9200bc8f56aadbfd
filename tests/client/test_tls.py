from __future__ import annotations

import asyncio
import ssl
import tempfile
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.client import tls
from kubectl_ctrl.client.tls import Certificate, load_certificate, unverified, verifying
from kubectl_ctrl.errors import ConfigError, CredentialsError
from kubectl_ctrl.kubeconfig.secret import Secret
from tests.client.loopback import server_tls, serving
from tests.kubeconfig.kubeconfigs import certificate

CLIENT = Certificate(chain=certificate("client"), key=Secret(certificate("client.key").decode()), origin="user 'dev'")


def handshake(context: ssl.SSLContext, *, server: str = "server", name: str = "127.0.0.1") -> str | None:
    """Connect with this context; the server name that the server was told."""

    async def run() -> str | None:
        async with serving(tls=server_tls(server)) as box:
            _, writer = await asyncio.open_connection("127.0.0.1", box.port, ssl=context, server_hostname=name)
            writer.close()
            await writer.wait_closed()
            return box.server_name

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("authority", "server", "name"),
    [
        ("ca", "server", "127.0.0.1"),
        ("ca", "server", "localhost"),
        ("ca", "named", "api.example"),
        ("bare", "under-bare", "127.0.0.1"),  # no key identifiers: what OpenSSL's strict mode refuses
        ("middle", "under-middle", "127.0.0.1"),  # an authority below another one as the anchor
        ("alone", "alone", "127.0.0.1"),  # the server's own certificate as the anchor
    ],
)
def test_servers_that_kubectl_takes(authority: str, server: str, name: str) -> None:
    told = handshake(verifying(certificate(authority), "the CA"), server=server, name=name)
    assert told == (None if name == "127.0.0.1" else name)


@pytest.mark.parametrize(
    ("authority", "server", "name", "problem"),
    [
        ("bare", "server", "127.0.0.1", "certificate verify failed"),
        ("ca", "alone", "127.0.0.1", "self-signed certificate"),
        ("ca", "named", "127.0.0.1", "IP address mismatch"),
        ("ca", "server", "api.example", "Hostname mismatch"),
        ("ca", "nameless", "localhost", "Hostname mismatch"),  # a common name is not a name
    ],
)
def test_servers_that_it_does_not(authority: str, server: str, name: str, problem: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=problem):
        handshake(verifying(certificate(authority), "the CA"), server=server, name=name)


def test_the_system_is_trusted_when_no_authority_is_given() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(verifying(b"", "the CA"))


def test_insecure_takes_anybody() -> None:
    assert handshake(unverified(), server="alone", name="api.example") == "api.example"


def test_nothing_is_stricter_than_kubectl_on_any_python() -> None:
    for context in (verifying(certificate("ca"), "the CA"), unverified()):
        assert not context.verify_flags & ssl.VERIFY_X509_STRICT
        assert context.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_bundle_may_hold_other_text_and_broken_certificates() -> None:
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    bundle = "# Gültig bis morgen\n".encode() + broken + certificate("bare") + certificate("ca") + certificate("ca")
    handshake(verifying(bundle, "the CA"))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"hello", "it contains no PEM certificate"),
        (certificate("client.key"), "it contains no PEM certificate"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "."),
        ("-----BEGIN CERTIFICATE-----\nÄ\n-----END CERTIFICATE-----\n".encode(), "it is not ASCII"),
    ],
)
def test_an_authority_without_a_certificate_is_an_error(content: bytes, why: str) -> None:
    with pytest.raises(ConfigError, match=r"^The CA of cluster 'dev' cannot be used: ") as caught:
        verifying(content, "CA of cluster 'dev'")
    assert why in str(caught.value)


def test_the_key_is_on_disk_for_the_loading_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes: list[str] = []
    load = ssl.SSLContext.load_cert_chain

    def look(self: ssl.SSLContext, chain: str, key: str, **options: Any) -> None:
        modes.extend(oct(Path(name).stat().st_mode & 0o7777) for name in (str(Path(key).parent), chain, key))
        load(self, chain, key, **options)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", look)
    load_certificate(unverified(), CLIENT)
    assert modes == ["0o700", "0o600", "0o600"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (certificate("server.key"), "do not match."),
        (b"nonsense", "are not both PEM."),
        (certificate("client.encrypted"), "The client key of user 'dev' is encrypted."),
    ],
)
def test_keys_that_do_not_fit(
    key: bytes, sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    wrong = Certificate(chain=CLIENT.chain, key=Secret(key.decode("latin-1")), origin="user 'dev'")
    with pytest.raises(CredentialsError) as caught:
        load_certificate(unverified(), wrong)
    assert sentence in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().out == ""  # OpenSSL did not ask for a pass phrase


def test_a_certificate_does_not_show_its_key() -> None:
    assert "PRIVATE" not in repr(CLIENT)
    assert tls.Certificate(chain=CLIENT.chain, key=CLIENT.key, origin="user 'dev'") == CLIENT
