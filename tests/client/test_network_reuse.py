from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.errors import CredentialsError, Refused
from kubectl_ctrl.model.transport import HttpRequest, NoAnswer, TooSlow
from tests.client.hands import HandClock, until
from tests.client.loopback import STREAM, Request, plain, say_ok, server_tls, serving
from tests.client.wired import CANARY, GET, connected, dev, hang
from tests.kubeconfig.kubeconfigs import written

pytestmark = pytest.mark.real_loop


def guarded(valid: set[str]) -> Callable[[Request, asyncio.StreamWriter], Coroutine[Any, Any, None]]:
    """A server that lets only these tokens in."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        known = (request.one("authorization") or "").removeprefix("Bearer ") in valid
        writer.write(plain(b"in") if known else plain(b"out", "401 Unauthorized"))

    return answer


class TestRefusedCredentials:
    async def test_many_refusals_read_the_kubeconfig_once_and_send_again_once(self, tmp_path: Path) -> None:
        async with serving(guarded({"new"}), tls=server_tls()) as box, connected(tmp_path, box) as transport:
            written(tmp_path, dev(box, user={"token": "new"}))
            answers = await asyncio.gather(*(transport.send(GET) for _ in range(10)))
            assert {answer.status for answer in answers} == {200}
            tokens = [request.one("authorization") for request in box.requests]
            assert tokens.count("Bearer t0ken") == 10
            assert tokens.count("Bearer new") == 10

    async def test_nothing_new_is_not_sent_again(self, tmp_path: Path) -> None:
        async with serving(guarded(set()), tls=server_tls()) as box, connected(tmp_path, box) as transport:
            assert (await transport.send(GET)).status == 401
            assert (await transport.send(GET)).body == b"out"
            assert len(box.requests) == 2
            stream = await transport.open(GET)
            assert (stream.status, await stream.read()) == (401, b"out")

    async def test_a_stream_is_opened_again_too(self, tmp_path: Path) -> None:
        async with serving(guarded({"new"}), tls=server_tls()) as box, connected(tmp_path, box) as transport:
            written(tmp_path, dev(box, user={"token": "new"}))
            stream = await transport.open(GET)
            assert (stream.status, await stream.read()) == (200, b"in")
            assert repr(transport) == f"NetworkTransport({box.url}, calls=0, streams=0, closed=False)"

    @pytest.mark.parametrize("use", ["send", "open"])
    async def test_a_kubeconfig_that_means_another_cluster_by_now_is_refused(self, tmp_path: Path, use: str) -> None:
        async with serving(guarded(set()), tls=server_tls()) as box, connected(tmp_path, box) as transport:
            written(tmp_path, dev(box, user={"token": CANARY}, server="https://prod.example"))
            with pytest.raises(Refused) as caught:
                await getattr(transport, use)(GET)
            assert caught.value.exit_code == 6
            assert caught.value.tried == f"started with {box.url}, now https://prod.example"
            assert len(box.requests) == 1
            assert repr(transport) == f"NetworkTransport({box.url}, calls=0, streams=0, closed=False)"

    async def test_credentials_that_cannot_be_got(self, tmp_path: Path) -> None:
        user = {"tokenFile": str(tmp_path / "gone")}
        async with serving(tls=server_tls()) as box, connected(tmp_path, box, user=user) as transport:
            for use in (transport.send, transport.open):
                with pytest.raises(CredentialsError, match="cannot be read"):
                    await use(GET)
            assert box.requests == []


class TestConnections:
    async def test_they_are_left_behind_when_the_machine_slept(self, tmp_path: Path) -> None:
        clock = HandClock()
        async with serving() as box, connected(tmp_path, box, clock=clock) as transport:
            for _ in range(2):
                await transport.send(GET)
            assert box.connections == 1
            clock.advance(3600)
            await transport.send(GET)
            assert box.connections == 2
            await until(lambda: box.open == 1)

    async def test_they_are_left_behind_when_a_call_hung(self, tmp_path: Path) -> None:
        clock, reached = HandClock(), asyncio.Event()
        async with serving() as box, connected(tmp_path, box, clock=clock) as transport:
            await asyncio.gather(transport.send(GET), transport.send(GET))
            assert box.connections == 2
            box.answer = hang(reached)
            call = asyncio.create_task(transport.send(HttpRequest(method="GET", path="/", deadline=10)))
            await reached.wait()
            clock.advance(10)
            with pytest.raises(TooSlow):
                await call
            box.answer = say_ok
            await transport.send(GET)
            assert box.connections == 3
            await until(lambda: box.open == 2)  # the new one, and the one whose server side still hangs

    async def test_close_ends_streams_that_were_opened_before_a_call_hung(self, tmp_path: Path) -> None:
        reached = asyncio.Event()

        async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
            if request.target == "/watch":
                writer.write(STREAM)
            else:
                await hang(reached)(request, writer)

        clock = HandClock()
        async with serving(answer) as box, connected(tmp_path, box, clock=clock) as transport:
            stream = await transport.open(HttpRequest(method="GET", path="/watch"))
            call = asyncio.create_task(transport.send(HttpRequest(method="GET", path="/", deadline=10)))
            await reached.wait()
            clock.advance(10)
            with pytest.raises(TooSlow):
                await call
            await transport.close()
            with pytest.raises(NoAnswer):
                async with asyncio.timeout(120):
                    await anext(stream.batches())
            await stream.close()
            assert repr(transport) == f"NetworkTransport({box.url}, calls=0, streams=0, closed=True)"

    async def test_a_cancelled_call_is_gone(self, tmp_path: Path) -> None:
        reached = asyncio.Event()
        async with serving(hang(reached)) as box, connected(tmp_path, box) as transport:
            for use in (transport.send, transport.open):
                reached.clear()
                call = asyncio.create_task(use(GET))
                await reached.wait()
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call
                assert repr(transport) == f"NetworkTransport({box.url}, calls=0, streams=0, closed=False)"

    async def test_streams_do_not_take_the_place_of_calls(self, tmp_path: Path) -> None:
        async def split(request: Request, writer: asyncio.StreamWriter) -> None:
            if request.target == "/watch":
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            else:
                writer.write(plain())

        async with serving(split) as box, connected(tmp_path, box) as transport:
            watch = HttpRequest(method="GET", path="/watch")
            streams = await asyncio.gather(*(transport.open(watch) for _ in range(80)))
            async with asyncio.timeout(120):
                assert (await transport.send(GET)).status == 200
            assert repr(transport) == f"NetworkTransport({box.url}, calls=0, streams=80, closed=False)"
            for stream in streams:
                await stream.close()
            await until(lambda: box.open == 1)
