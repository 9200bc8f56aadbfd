from __future__ import annotations

import asyncio
import base64
import gc
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.client.auth.credentials import Credentials
from kubectl_ctrl.client.auth.grants import Grant
from kubectl_ctrl.errors import CredentialsError, Refused
from kubectl_ctrl.kubeconfig.secret import Secret
from tests.client.auth.test_execplugin import V1
from tests.client.auth.test_oidc import id_token
from tests.client.auth.test_oidc import user as oidc_user
from tests.client.hands import HandClock, until
from tests.client.loopback import server_tls, serving
from tests.kubeconfig.kubeconfigs import certificate, kubeconfig, resolved, written
from tests.objects import present

pytestmark = [pytest.mark.programs("tr", "wc"), pytest.mark.real_loop]

CERTIFIED = {
    "client-certificate-data": base64.b64encode(certificate("client")).decode(),
    "client-key-data": base64.b64encode(certificate("client.key")).decode(),
}
OIDC = {"auth-provider": {"name": "oidc", "config": {"idp-issuer-url": "https://idp", "client-id": "c"}}}
NO_PLUGIN = {"exec": {"apiVersion": V1, "command": "no-such-plugin", "interactiveMode": "Never"}}


def credentials(folder: Path, user: dict[str, Any], clock: HandClock | None = None, **flags: Any) -> Credentials:
    found = resolved(folder, kubeconfig(user=user), **flags)
    return Credentials(found, clock=clock or HandClock(), environ={"PATH": os.environ["PATH"]}, interactive=False)


def counting_plugin(folder: Path, *, life: str = "", more: str = "") -> dict[str, Any]:
    """A plugin whose n-th run gives the token `run-n`."""
    end = f', \\"expirationTimestamp\\": \\"{life}\\"' if life else ""
    status = f'{{\\"token\\": \\"run-$n\\"{end}}}'
    answer = f'{{\\"apiVersion\\": \\"{V1}\\", \\"kind\\": \\"ExecCredential\\", \\"status\\": {status}}}'
    count = f"cd {folder}; echo x >>runs; n=$(wc -l <runs | tr -d ' ')"
    (folder / "plugin").write_text(f'#!/bin/sh\n{count}\n{more}\necho "{answer}"\n')
    (folder / "plugin").chmod(0o755)
    return {"exec": {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never"}}


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().split()) if (folder / "runs").exists() else 0


@pytest.mark.parametrize(
    ("user", "flags", "source"),
    [
        ({"token": "t"}, {}, "KubeconfigCredentials"),
        ({"token": "t", "tokenFile": "f"}, {}, "TokenFile"),
        ({"tokenFile": "f"}, {"token": "t"}, "TokenFile"),
        ({"username": "u", "password": "p"}, {}, "KubeconfigCredentials"),
        (CERTIFIED, {}, "KubeconfigCredentials"),
        (CERTIFIED | NO_PLUGIN, {}, "KubeconfigCredentials"),
        (NO_PLUGIN, {}, "ExecPlugin"),
        (NO_PLUGIN, {"token": "t"}, "KubeconfigCredentials"),
        (NO_PLUGIN, {"username": "u"}, "KubeconfigCredentials"),
        (OIDC, {}, "Oidc"),
        (OIDC | CERTIFIED, {}, "Oidc"),
        (OIDC, {"token": "t"}, "KubeconfigCredentials"),
    ],
)
def test_which_way_is_taken(tmp_path: Path, user: dict[str, Any], flags: Any, source: str) -> None:
    assert repr(credentials(tmp_path, user, **flags)).startswith(f"Credentials({source}(")


@pytest.mark.parametrize(
    ("user", "sentence"),
    [
        ({}, "The user 'dev' has no credentials for https://127.0.0.1:6443."),
        ({"password": "p"}, "The user 'dev' has no credentials for https://127.0.0.1:6443."),
        (
            {"auth-provider": {"name": "gcp"}},
            "The auth-provider 'gcp' of user 'dev' is not supported, also not by kubectl.",
        ),
        ({"auth-provider": {"name": "oidc"}}, "The auth-provider oidc of user 'dev' has no idp-issuer-url."),
    ],
)
def test_ways_that_do_not_exist(tmp_path: Path, user: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        credentials(tmp_path, user)
    assert str(caught.value) == sentence


def test_a_plain_http_server_needs_none(tmp_path: Path) -> None:
    found = resolved(tmp_path, kubeconfig(cluster={"server": "http://h"}, user=NO_PLUGIN))
    held = Credentials(found, clock=HandClock(), environ={}, interactive=False)
    assert asyncio.run(held.current()).proves_as(Grant())


class TestCurrent:
    def test_a_file_that_is_missing_is_a_matter_of_credentials(self, tmp_path: Path) -> None:
        held = credentials(tmp_path, {"client-certificate": "/gone.pem", "client-key": "/gone.pem"})
        with pytest.raises(
            CredentialsError, match=r"The client-certificate of user 'dev', '/gone.pem', cannot be read"
        ):
            asyncio.run(held.current())

    async def test_one_run_is_shared_and_kept(self, tmp_path: Path) -> None:
        held = credentials(tmp_path, counting_plugin(tmp_path))
        grants = await asyncio.gather(*(held.current() for _ in range(20)))
        assert {id(grant) for grant in grants} == {id(await held.current())}
        assert runs(tmp_path) == 1

    async def test_it_is_got_anew_when_it_expires(self, tmp_path: Path) -> None:
        clock = HandClock(now=1772359200.0 - 100)
        held = credentials(tmp_path, counting_plugin(tmp_path, life="2026-03-01T10:00:00Z"), clock)
        assert (await held.current()).authorization == Secret("Bearer run-1")
        clock.advance(99)
        assert (await held.current()).authorization == Secret("Bearer run-1")
        clock.advance(1)
        # Over when it came, as with a clock that is ahead: used all the same, and asked for again the next time.
        assert (await held.current()).authorization == Secret("Bearer run-2")
        assert (await held.current()).authorization == Secret("Bearer run-3")

    async def test_who_stops_waiting_does_not_stop_the_plugin(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "gate")
        held = credentials(tmp_path, counting_plugin(tmp_path, more="read line <gate"))
        impatient = asyncio.create_task(held.current())
        await until(lambda: runs(tmp_path) == 1)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        patient = asyncio.create_task(held.current())
        await asyncio.to_thread((tmp_path / "gate").write_text, "go\n")
        assert (await patient).authorization == Secret("Bearer run-1")
        assert runs(tmp_path) == 1

    async def test_closing_stops_the_plugin_and_tells_who_waits(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "gate")
        held = credentials(tmp_path, counting_plugin(tmp_path, more="echo $$ >pid; read line <gate"))
        waiting = asyncio.create_task(held.current())
        pid = tmp_path / "pid"
        await until(lambda: pid.exists() and bool(pid.read_text().strip()))
        await held.close()
        with pytest.raises(CredentialsError, match="closed"):
            await waiting
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)
        await held.close()

    async def test_a_failing_plugin_is_run_less_and_less_often(self, tmp_path: Path) -> None:
        clock = HandClock()
        held = credentials(tmp_path, counting_plugin(tmp_path, more="[ -e login ] || exit 1"), clock)
        ends = await asyncio.gather(*(held.current() for _ in range(5)), return_exceptions=True)
        assert {type(end) for end in ends} == {CredentialsError}
        started = clock.elapsed()
        tries: list[float] = []
        while clock.elapsed() - started < 1200:
            before = runs(tmp_path)
            with pytest.raises(CredentialsError, match="exited with code 1"):
                await held.current()
            tries += [clock.elapsed() - started] * (runs(tmp_path) - before)
            clock.advance(5)
        assert tries == [10, 30, 70, 150, 310, 610, 910]
        with pytest.raises(CredentialsError) as caught:
            await held.current()
        assert caught.value.next_step.endswith("; the next try is in 10 s, or at once when the kubeconfig changes")
        (tmp_path / "login").touch()
        clock.advance(10)
        assert (await held.current()).authorization == Secret("Bearer run-9")

    async def test_after_a_success_the_next_failure_is_the_first(self, tmp_path: Path) -> None:
        clock = HandClock()
        held = credentials(tmp_path, counting_plugin(tmp_path, more="[ $n = 3 ] || exit 1"), clock)
        for pause in (10, 20):
            with pytest.raises(CredentialsError):
                await held.current()
            clock.advance(pause)
        refused = await held.current()
        with pytest.raises(CredentialsError):
            await held.renew(refused)
        assert await held.renew(refused) is None
        clock.advance(10)
        with pytest.raises(CredentialsError):
            await held.renew(refused)
        assert runs(tmp_path) == 5
        clock.advance(10)
        with pytest.raises(CredentialsError, match="exited with code 1"):
            await held.renew(refused)
        assert runs(tmp_path) == 5

    async def test_a_changed_kubeconfig_ends_the_pause_after_a_failure(self, tmp_path: Path) -> None:
        clock = HandClock()
        held = credentials(tmp_path, counting_plugin(tmp_path, more="exit 1"), clock)
        for _ in range(2):
            with pytest.raises(CredentialsError):
                await held.current()
        written(tmp_path, kubeconfig(user={"token": "pasted"}))
        clock.advance(1)
        assert (await held.current()).authorization == Secret("Bearer pasted")
        assert runs(tmp_path) == 1

    async def test_a_token_file_is_read_again_at_once(self, tmp_path: Path) -> None:
        file = tmp_path / "token"
        held = credentials(tmp_path, {"tokenFile": str(file)})
        with pytest.raises(CredentialsError):
            await held.current()
        file.write_text("late")
        assert (await held.current()).authorization == Secret("Bearer late")

    async def test_a_failure_that_nobody_waits_for_any_longer_is_no_lost_error(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "gate")
        held = credentials(tmp_path, counting_plugin(tmp_path, more="read line <gate; exit 1"))
        impatient = asyncio.create_task(held.current())
        await until(lambda: runs(tmp_path) == 1)
        impatient.cancel()
        await asyncio.to_thread((tmp_path / "gate").write_text, "go\n")
        await until(lambda: "fetching=False" in repr(held))
        gc.collect()  # asyncio complains of an error that nobody saw when the task goes

    async def test_a_token_that_kubectl_refreshed_is_taken_from_the_kubeconfig(self, tmp_path: Path) -> None:
        clock = HandClock()
        async with serving(tls=server_tls(ask=False)) as issuer:

            def user(life: float) -> dict[str, Any]:
                return oidc_user(issuer, **{"id-token": id_token(clock.now() + life)})

            held = credentials(tmp_path, user(60), clock)
            await held.current()
            clock.advance(60)
            written(tmp_path, kubeconfig(user=user(3600)))
            assert (await held.current()).expires == clock.now() + 3590
            # Using a refresh token that somebody used before can cost the user the whole login.
            assert issuer.requests == []

    async def test_a_failing_plugin_may_have_been_replaced_in_the_kubeconfig(self, tmp_path: Path) -> None:
        held = credentials(tmp_path, NO_PLUGIN)
        written(tmp_path, kubeconfig(user={"token": "pasted"}))
        assert (await held.current()).authorization == Secret("Bearer pasted")


class TestRenew:
    async def test_the_plugin_runs_once_for_many_refusals(self, tmp_path: Path) -> None:
        held = credentials(tmp_path, counting_plugin(tmp_path))
        refused = await held.current()
        fresh = await asyncio.gather(*(held.renew(refused) for _ in range(20)))
        assert {grant and grant.authorization for grant in fresh} == {Secret("Bearer run-2")}
        late = await held.renew(refused)  # its request was slower than the renewal
        assert late is await held.current()
        assert runs(tmp_path) == 2

    async def test_a_user_without_rights_does_not_run_the_plugin_for_each_call(self, tmp_path: Path) -> None:
        clock = HandClock()
        held = credentials(tmp_path, counting_plugin(tmp_path), clock)
        second = present(await held.renew(await held.current()))
        assert await held.renew(second) is None
        clock.advance(10)
        assert present(await held.renew(second)).authorization == Secret("Bearer run-3")

    async def test_the_same_again_is_nothing_new(self, tmp_path: Path) -> None:
        held = credentials(tmp_path, {"token": "t"})
        refused = await held.current()
        assert list(await asyncio.gather(held.renew(refused), held.renew(refused))) == [None, None]
        assert await held.current() is refused

    async def test_a_changed_entry_is_used(self, tmp_path: Path) -> None:
        held = credentials(tmp_path, {"token": "old"})
        refused = await held.current()
        written(tmp_path, kubeconfig(user=counting_plugin(tmp_path)))
        assert present(await held.renew(refused)).authorization == Secret("Bearer run-1")

    async def test_a_new_certificate_file_is_used(self, tmp_path: Path) -> None:
        for name in ("client", "client.key"):
            (tmp_path / f"{name}.pem").write_bytes(certificate(name))
        held = credentials(tmp_path, {"client-certificate": "client.pem", "client-key": "client.key.pem"})
        refused = await held.current()
        assert await held.renew(refused) is None
        held._replaced_at = None
        for name in ("client", "client.key"):
            (tmp_path / f"{name}.pem").write_bytes(certificate(f"other-{name}"))
        fresh = present(await held.renew(refused))
        assert fresh.certificate is not None
        assert fresh.certificate.chain == certificate("other-client")

    @pytest.mark.parametrize(
        "cluster",
        [
            {"server": "https://127.0.0.1:7443"},
            {"certificate-authority-data": base64.b64encode(certificate("ca")).decode()},
            {"insecure-skip-tls-verify": True},
        ],
    )
    async def test_another_cluster_is_refused(self, tmp_path: Path, cluster: dict[str, Any]) -> None:
        held = credentials(tmp_path, {"token": "old"})
        refused = await held.current()
        written(tmp_path, kubeconfig(user={"token": "new"}, cluster=cluster))
        ends = await asyncio.gather(held.renew(refused), held.renew(refused), return_exceptions=True)
        assert {type(end) for end in ends} == {Refused}
        assert "'dev' now means another cluster" in str(ends[0])

    @pytest.mark.parametrize("content", ["", "[", None])
    def test_a_kubeconfig_that_went_away_changes_nothing(
        self, tmp_path: Path, content: str | None, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def test() -> None:
            held = credentials(tmp_path, counting_plugin(tmp_path))
            refused = await held.current()
            if content is None:
                (tmp_path / "config").unlink()
            else:
                written(tmp_path, content)
            assert present(await held.renew(refused)).authorization == Secret("Bearer run-2")

        with caplog.at_level(logging.WARNING):
            asyncio.run(test())
        assert [getattr(record, "action", "") for record in caplog.records] == ["credentials.reload_failed"]

    async def test_another_current_context_is_not_followed(self, tmp_path: Path) -> None:
        held = credentials(tmp_path, {"token": "old"})
        refused = await held.current()
        content = kubeconfig(user={"token": "new"}, current="other")
        content["contexts"].append({"name": "other", "context": {"cluster": "other", "user": "other"}})
        content["clusters"].append({"name": "other", "cluster": {"server": "https://other"}})
        content["users"].append({"name": "other", "user": {"token": "other"}})
        written(tmp_path, content)
        assert present(await held.renew(refused)).authorization == Secret("Bearer new")
