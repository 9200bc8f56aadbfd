from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from kubectl_ctrl.client.auth.grants import Grant
from kubectl_ctrl.client.auth.oidc import Oidc
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CredentialsError
from kubectl_ctrl.kubeconfig.secret import Secret
from tests.client.hands import HandClock
from tests.client.loopback import Loopback, Request, plain, server_tls, serving
from tests.kubeconfig.kubeconfigs import CERTIFICATES, certificate, kubeconfig, resolved

pytestmark = pytest.mark.real_loop


CANARY = "c4nary-in-the-mine"
CA = base64.b64encode(certificate("ca")).decode()


def id_token(expires: float, *, mark: str = "") -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires, "mark": mark}).encode()).decode().rstrip("=")
    return f"{base64.urlsafe_b64encode(b'{}').decode()}.{claims}.sig"


class Provider:
    """An identity provider: a discovery document, and what the token endpoint answers."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.fixed = ""  # answered instead of a token of the moment
        self.path = "/issuer"
        self.refreshes = 0
        self.form_only = False
        self.answer: Callable[[dict[str, str]], dict[str, Any] | bytes] = self.fresh
        self.discovery: bytes | None = None
        self.url = ""

    def fresh(self, _form: dict[str, str]) -> dict[str, Any]:
        self.refreshes += 1
        token = self.fixed or id_token(self.clock.now() + 3600, mark=str(self.refreshes))
        return {"access_token": "unused", "id_token": token, "token_type": "Bearer"}

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if request.target == f"{self.path}/.well-known/openid-configuration":
            found = json.dumps({"token_endpoint": f"{self.url}/token"}).encode()
            writer.write(plain(found if self.discovery is None else self.discovery))
        elif request.target == "/token":
            writer.write(self.token(request))
        else:
            writer.write(plain(b"no", "404 Not Found"))

    def token(self, request: Request) -> bytes:
        form = {key: values[0] for key, values in parse_qs(request.body.decode()).items()}
        if self.form_only and request.one("authorization"):
            return plain(CANARY.encode(), "401 Unauthorized")
        answer = self.answer(form)
        return plain(json.dumps(answer).encode()) if isinstance(answer, dict) else answer


def user(box: Loopback, **config: str) -> dict[str, Any]:
    settings = {
        "idp-issuer-url": f"{box.url}/issuer/",
        "client-id": "kube ctl",
        "client-secret": "s&cret",
        "refresh-token": "refresh-1",
        "idp-certificate-authority-data": CA,
        **config,
    }
    return {"auth-provider": {"name": "oidc", "config": {key: value for key, value in settings.items() if value}}}


def header(grant: Grant) -> str:
    assert grant.authorization is not None
    return grant.authorization.reveal()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def provider(clock: HandClock) -> Provider:
    return Provider(clock)


@asynccontextmanager
async def served(provider: Provider, *, server: str = "server") -> AsyncIterator[Loopback]:
    async with serving(provider, tls=server_tls(server, ask=False)) as box:
        provider.url = box.url
        yield box


@pytest.fixture
async def box(provider: Provider) -> AsyncIterator[Loopback]:
    async with served(provider) as box:
        yield box


def source(folder: Path, box: Loopback, clock: HandClock, **config: str) -> Oidc:
    return Oidc(resolved(folder, kubeconfig(user=user(box, **config))), clock=clock)


async def test_a_token_that_lasts_is_used_as_it_is(tmp_path: Path, box: Loopback, clock: HandClock) -> None:
    token = id_token(clock.now() + 60)
    grant = await source(tmp_path, box, clock, **{"id-token": token}).obtain()
    assert (header(grant), grant.expires) == (f"Bearer {token}", clock.now() + 50)
    assert box.requests == []


@pytest.mark.parametrize("left", [10, 0, -3600, None])
async def test_a_token_that_is_over_is_refreshed(
    tmp_path: Path, left: float | None, provider: Provider, box: Loopback, clock: HandClock
) -> None:
    old = "" if left is None else id_token(clock.now() + left)
    grant = await source(tmp_path, box, clock, **{"id-token": old}).obtain()
    assert header(grant) == f"Bearer {id_token(clock.now() + 3600, mark='1')}"
    sent = box.last
    assert (sent.method, sent.target) == ("POST", "/token")
    assert parse_qs(sent.body.decode()) == {"grant_type": ["refresh_token"], "refresh_token": ["refresh-1"]}
    login = base64.b64encode(b"kube+ctl:s%26cret").decode()
    assert sent.all("authorization") == [f"Basic {login}"]


async def test_a_token_that_was_refused_is_refreshed_before_its_end(
    tmp_path: Path, box: Loopback, clock: HandClock
) -> None:
    oidc = source(tmp_path, box, clock, **{"id-token": id_token(clock.now() + 60)})
    first, second = await oidc.obtain(), await oidc.obtain()
    assert not first.proves_as(second)


async def test_a_provider_that_wants_the_client_in_the_form(
    tmp_path: Path, provider: Provider, box: Loopback, clock: HandClock
) -> None:
    provider.form_only = True
    await source(tmp_path, box, clock).obtain()
    assert parse_qs(box.last.body.decode()) == {
        "grant_type": ["refresh_token"],
        "refresh_token": ["refresh-1"],
        "client_id": ["kube ctl"],
        "client_secret": ["s&cret"],
    }
    assert box.last.all("authorization") == []


async def test_a_new_refresh_token_is_kept_and_told_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, provider: Provider, box: Loopback, clock: HandClock
) -> None:
    seen: list[str] = []

    with caplog.at_level(logging.DEBUG):

        def rotate(form: dict[str, str]) -> dict[str, Any]:
            seen.append(form["refresh_token"])
            return provider.fresh(form) | {"refresh_token": f"{CANARY}-{len(seen)}"}

        provider.answer = rotate
        oidc = source(tmp_path, box, clock)
        before = (tmp_path / "config").read_bytes()
        for _ in range(3):
            await oidc.obtain()
        assert (tmp_path / "config").read_bytes() == before
    assert seen == ["refresh-1", f"{CANARY}-1", f"{CANARY}-2"]
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    ours = [record for record in warnings if record.name.startswith("kubectl_ctrl.")]  # asyncio reports slow steps
    assert {getattr(record, "action", "") for record in ours} == {"oidc.refresh_token_replaced"}
    assert CANARY not in caplog.text


async def test_the_client_certificate_of_the_user_stays(tmp_path: Path, box: Loopback, clock: HandClock) -> None:
    files = {"client-certificate": CERTIFICATES / "client.pem", "client-key": CERTIFICATES / "client.key.pem"}
    entry = user(box) | {key: str(value) for key, value in files.items()}
    grant = await Oidc(resolved(tmp_path, kubeconfig(user=entry)), clock=clock).obtain()
    assert grant.certificate is not None
    assert grant.certificate.chain == certificate("client")


class TestTrust:
    async def test_a_file_as_authority(self, tmp_path: Path, box: Loopback, clock: HandClock) -> None:
        files = {"idp-certificate-authority-data": "", "idp-certificate-authority": str(CERTIFICATES / "ca.pem")}
        assert (await source(tmp_path, box, clock, **files).obtain()).authorization

    @pytest.mark.parametrize(("server", "authority"), [("server", ""), ("alone", CA), ("named", CA)])
    async def test_a_provider_that_is_not_trusted_is_told_nothing(
        self, tmp_path: Path, server: str, authority: str, provider: Provider, clock: HandClock
    ) -> None:
        async with served(provider, server=server) as box:
            oidc = source(tmp_path, box, clock, **{"idp-certificate-authority-data": authority})
            with pytest.raises(CredentialsError, match=r"cannot be reached\.$") as caught:
                await oidc.obtain()
            assert caught.value.tried == "ClientConnectorCertificateError"
            assert box.requests == []

    async def test_insecure_for_the_cluster_is_not_insecure_for_the_provider(
        self, tmp_path: Path, box: Loopback, clock: HandClock
    ) -> None:
        entry = user(box, **{"idp-certificate-authority-data": ""})
        found = resolved(tmp_path, kubeconfig(user=entry), insecure_skip_tls_verify=True)
        with pytest.raises(CredentialsError, match="cannot be reached"):
            await Oidc(found, clock=clock).obtain()

    @pytest.mark.parametrize("url", ["http://127.0.0.1:1", "idp.example", "https://"])
    async def test_only_https(
        self, tmp_path: Path, url: str, provider: Provider, box: Loopback, clock: HandClock
    ) -> None:
        with pytest.raises(CredentialsError, match=r"The idp-issuer-url of .* is not an https URL"):
            source(tmp_path, box, clock, **{"idp-issuer-url": url})
        provider.discovery = json.dumps({"token_endpoint": url}).encode()
        with pytest.raises(CredentialsError, match=r"The token_endpoint of .* is not an https URL"):
            await source(tmp_path, box, clock).obtain()


@pytest.mark.parametrize(
    ("config", "answer", "sentence"),
    [
        ({"refresh-token": "", "id-token": "{expired}"}, None, "has expired, and there is no refresh-token."),
        ({"id-token": f"{CANARY}"}, None, "is not a JWT with an expiry time."),
        ({"id-token": f"a.{CANARY}.b"}, None, "is not a JWT with an expiry time."),
        ({"idp-certificate-authority-data": "%"}, None, "is not valid base64."),
        ({"idp-certificate-authority-data": "YQ=="}, None, "cannot be used: it contains no PEM certificate."),
        (
            {},
            plain(f'{{"error": "{CANARY}"}}'.encode(), "400 Bad Request"),
            "refused the refresh-token of auth-provider",
        ),
        ({}, {"access_token": CANARY}, "refreshed without an id_token."),
        ({}, {"id_token": CANARY}, "is not a JWT with an expiry time."),
        ({}, plain(CANARY.encode()), "answered something that is not a JSON object."),
        ({}, plain(b"[]"), "answered something that is not a JSON object."),
    ],
)
async def test_errors(
    tmp_path: Path,
    config: dict[str, str],
    answer: Any,
    sentence: str,
    provider: Provider,
    box: Loopback,
    clock: HandClock,
) -> None:
    if answer is not None:
        provider.answer = lambda _form: answer
    given = {key: value.replace("{expired}", id_token(0)) for key, value in config.items()}
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its type is checked below
        await source(tmp_path, box, clock, **given).obtain()
    assert getattr(caught.value, "exit_code", None) == 3
    assert sentence in str(caught.value)
    assert CANARY not in f"{caught.value} {caught.value.__dict__}"


async def test_a_provider_that_does_not_answer(tmp_path: Path, box: Loopback, clock: HandClock) -> None:
    reached = asyncio.Event()

    async def hang(_request: Request, _writer: asyncio.StreamWriter) -> None:
        reached.set()
        await asyncio.Event().wait()

    box.answer = hang
    getting = asyncio.ensure_future(source(tmp_path, box, clock).obtain())
    await reached.wait()
    clock.advance(30)
    with pytest.raises(CredentialsError, match=r"did not answer within 30 s\.$"):
        await getting


async def test_a_wrong_issuer(tmp_path: Path, box: Loopback, clock: HandClock) -> None:
    oidc = source(tmp_path, box, clock, **{"idp-issuer-url": f"{box.url}/elsewhere"})
    with pytest.raises(CredentialsError, match=r"/elsewhere has no openid-configuration\.$"):
        await oidc.obtain()
    assert repr(oidc) == f"Oidc('{box.url}/elsewhere')"


async def test_secrets_are_not_shown(tmp_path: Path, box: Loopback, clock: HandClock) -> None:
    oidc = source(tmp_path, box, clock, **{"client-secret": CANARY, "refresh-token": CANARY})
    assert CANARY not in repr(oidc)
    assert oidc._refresh_token == Secret(CANARY)
