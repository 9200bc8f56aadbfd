from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.client.auth.grants import Grant, KubeconfigCredentials, TokenFile, bearer
from kubectl_ctrl.errors import ConfigError, CredentialsError
from kubectl_ctrl.kubeconfig.secret import Secret
from tests.client.hands import HandClock
from tests.kubeconfig.kubeconfigs import CERTIFICATES, certificate, kubeconfig, resolved
from tests.objects import present

CANARY = "c4nary-in-the-mine"


def header(grant: Grant) -> str | None:
    return grant.authorization.reveal() if grant.authorization else None


def fixed(folder: Path, user: dict[str, Any], **flags: Any) -> Grant:
    return asyncio.run(KubeconfigCredentials(resolved(folder, kubeconfig(user=user), **flags)).obtain())


def test_a_token_and_a_password(tmp_path: Path) -> None:
    assert header(fixed(tmp_path, {"token": "a"})) == "Bearer a"
    basic = base64.b64encode("ü:p:q".encode()).decode()
    assert header(fixed(tmp_path, {"username": "ü", "password": "p:q"})) == f"Basic {basic}"
    assert header(fixed(tmp_path, {}, username="u")) == f"Basic {base64.b64encode(b'u:').decode()}"
    assert fixed(tmp_path, {}).proves_as(Grant())


def test_a_certificate_is_read_each_time(tmp_path: Path) -> None:
    for name in ("client", "client.key"):
        (tmp_path / f"{name}.pem").write_bytes(certificate(name))
    user = {"client-certificate": "client.pem", "client-key": "client.key.pem"}
    source = KubeconfigCredentials(resolved(tmp_path, kubeconfig(user=user)))
    first = asyncio.run(source.obtain())
    assert first.certificate is not None
    assert (first.certificate.chain, first.certificate.key) == (
        certificate("client"),
        Secret(certificate("client.key").decode()),
    )
    assert first.proves_as(asyncio.run(source.obtain()))
    (tmp_path / "client.pem").write_bytes(certificate("other-client"))
    assert not first.proves_as(asyncio.run(source.obtain()))
    (tmp_path / "client.pem").unlink()
    with pytest.raises(
        ConfigError, match=r"The client-certificate of user 'dev', '.*client.pem', cannot be read: No such"
    ):
        asyncio.run(source.obtain())


def test_data_and_file_may_be_mixed(tmp_path: Path) -> None:
    user = {
        "client-certificate": str(CERTIFICATES / "client.pem"),
        "client-key-data": base64.b64encode(certificate("client.key")).decode(),
    }
    assert present(fixed(tmp_path, user).certificate).key == Secret(certificate("client.key").decode())


@pytest.mark.parametrize("token", [f"{CANARY}\nX: y", f"{CANARY}ü", f"{CANARY}\x00"])
def test_a_token_that_would_break_the_header_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        bearer(token)
    assert CANARY not in str(caught.value)


class TestTokenFile:
    def source(self, folder: Path, clock: HandClock, **user: Any) -> TokenFile:
        found = resolved(folder, kubeconfig(user={"tokenFile": "token", **user}))
        return TokenFile(found, clock=clock)

    def test_it_is_read_anew_before_a_minute_is_over(self, tmp_path: Path) -> None:
        clock, file = HandClock(), tmp_path / "token"
        source = self.source(tmp_path, clock, token="fallback")
        file.write_text("one\n")
        grant = asyncio.run(source.obtain())
        assert (header(grant), grant.expires - clock.now()) == ("Bearer one", 50)
        file.write_text("two")
        assert header(asyncio.run(source.obtain())) == "Bearer two"
        file.unlink()
        assert header(asyncio.run(source.obtain())) == "Bearer two"
        file.write_text("")
        assert header(asyncio.run(source.obtain())) == "Bearer two"

    def test_the_token_of_the_kubeconfig_stands_in(self, tmp_path: Path) -> None:
        source = self.source(tmp_path, HandClock(), token="fallback")
        assert header(asyncio.run(source.obtain())) == "Bearer fallback"

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [(None, "cannot be read: No such file"), (b"", "is empty"), (b"\xff\xfe", "contains no token")],
    )
    def test_nothing_at_all(self, tmp_path: Path, content: bytes | None, sentence: str) -> None:
        if content is not None:
            (tmp_path / "token").write_bytes(content)
        with pytest.raises(CredentialsError, match=sentence) as caught:
            asyncio.run(self.source(tmp_path, HandClock()).obtain())
        assert str(tmp_path / "token") in str(caught.value)


def test_a_grant_shows_nothing(tmp_path: Path) -> None:
    assert CANARY not in repr(fixed(tmp_path, {"token": CANARY}))
    key = base64.b64encode(CANARY.encode()).decode()
    assert CANARY not in repr(fixed(tmp_path, {"client-certificate-data": "YQ==", "client-key-data": key}))
