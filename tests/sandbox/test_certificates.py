"""The certificates satisfy a strict client, and are kept while they are valid."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.sandbox import certificates

NAMES = ["ca.crt", "ca.key", "tls.crt", "tls.key"]
DAY = 86_400.0


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """A handshake in memory; raises what the client objects to."""
    upward, downward = ssl.MemoryBIO(), ssl.MemoryBIO()
    inner = server.wrap_bio(upward, downward, server_side=True)
    outer = client.wrap_bio(downward, upward, server_hostname=name)
    for side in (outer, inner, outer, inner):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return outer


@pytest.mark.parametrize("name", ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"])
def test_a_strict_client_accepts_the_names_of_this_machine(tmp_path: Path, name: str) -> None:
    server = certificates.server_context(tmp_path, SystemClock().now())
    client = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    client.set_alpn_protocols(["h2", "http/1.1"])
    assert _shake_hands(server, client, name).selected_alpn_protocol() == "http/1.1"


def test_other_names_and_other_authorities_are_refused(tmp_path: Path) -> None:
    now = SystemClock().now()
    server = certificates.server_context(tmp_path, now)
    (tmp_path / "other").mkdir()
    certificates.server_context(tmp_path / "other", now)
    for folder, name in ((tmp_path, "example.com"), (tmp_path / "other", "localhost")):
        with pytest.raises(ssl.SSLCertVerificationError):
            _shake_hands(server, ssl.create_default_context(cafile=str(folder / "ca.crt")), name)


def test_files_are_private_and_kept_until_they_are_old_or_damaged(tmp_path: Path) -> None:
    now = SystemClock().now()

    def made(at: float) -> bytes:
        certificates.server_context(tmp_path, at)
        return b"".join((tmp_path / name).read_bytes() for name in NAMES)

    first = made(now)
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert made(now + 3_600 * DAY) == first
    second = made(now + 3_630 * DAY)
    assert second != first
    (tmp_path / "tls.key").write_bytes(b"")
    assert made(now + 3_630 * DAY) != second
