from __future__ import annotations

import asyncio
import gc
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubectl_ctrl.client import lines
from kubectl_ctrl.client.streams import NetworkStream
from kubectl_ctrl.clock import Clock, SystemClock
from kubectl_ctrl.model.transport import HttpRequest, NoAnswer, TooSlow
from tests.client.hands import HandClock, until
from tests.client.loopback import STREAM, Loopback, Request, chunk, plain, server_tls, serving
from tests.client.wired import connected

pytestmark = pytest.mark.real_loop


class Script:
    """What the server says on the stream, moved by the test."""

    def __init__(self) -> None:
        self.writer: asyncio.StreamWriter | None = None
        self.over = asyncio.Event()

    async def answer(self, _request: Request, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.over.clear()
        writer.write(STREAM)
        await self.over.wait()

    def say(self, content: bytes) -> None:
        assert self.writer is not None
        self.writer.write(content)

    def end(self, content: bytes = b"0\r\n\r\n", *, close: bool = False) -> None:
        assert self.writer is not None
        self.writer.write(content)
        if close:
            self.writer.close()
        self.over.set()


@asynccontextmanager
async def opened(
    folder: Path, *, silence: float | None = None, clock: Clock | None = None, tls: bool = False
) -> AsyncIterator[tuple[Loopback, Script, NetworkStream]]:
    script = Script()
    async with (
        serving(script.answer, tls=server_tls() if tls else None) as box,
        connected(folder, box, clock=clock or SystemClock()) as transport,
    ):
        stream = await transport.open(HttpRequest(method="GET", path="/watch", deadline=30, silence=silence))
        yield box, script, stream
        await stream.close()
        assert repr(transport) == f"NetworkTransport({box.url}, calls=0, streams=0, closed=False)"


async def rest(stream: NetworkStream) -> list[bytes]:
    return [line async for batch in stream.batches() for line in batch]


async def test_lines_come_as_soon_as_they_are_whole(tmp_path: Path) -> None:
    async with opened(tmp_path) as (_, script, stream):
        batches = stream.batches()
        script.say(chunk(b"one\ntw"))
        assert await anext(batches) == [b"one"]
        waiting = asyncio.ensure_future(anext(batches))
        script.say(chunk(b"o") + chunk(b"\n\nthree\n"))
        assert await waiting == [b"two", b"three"]
        script.end()
        assert [batch async for batch in batches] == []
        assert "closed=True" in repr(stream)


async def test_thousands_of_large_lines_in_one_go(tmp_path: Path) -> None:
    line = b"x" * 9000
    async with opened(tmp_path, tls=True) as (_, script, stream):
        script.end(chunk((line + b"\n") * 4000) + b"0\r\n\r\n")
        count = 0
        async for batch in stream.batches():
            assert set(batch) == {line}
            count += len(batch)
        assert count == 4000


async def test_a_stream_that_ended_well_leaves_its_connection(tmp_path: Path) -> None:
    script = Script()
    async with serving(script.answer) as box, connected(tmp_path, box) as transport:
        for _ in range(3):
            stream = await transport.open(HttpRequest(method="GET", path="/watch"))
            script.end(chunk(b"a\n") + b"0\r\n\r\n")
            assert await rest(stream) == [b"a"]
        assert box.connections == 1


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        (chunk(b"a\nhalf") + b"0\r\n\r\n", "The stream ended in the middle of a line."),
        (chunk(b"a\nhalf"), "was truncated."),
        (chunk(b"a\n"), "was truncated."),
        (chunk(b"a\n") + b"zz\r\n", "was truncated."),
    ],
)
async def test_a_stream_that_breaks(tmp_path: Path, end: bytes, sentence: str) -> None:
    async with opened(tmp_path) as (_, script, stream):
        script.end(end, close=True)
        with pytest.raises(NoAnswer) as caught:
            await rest(stream)
        assert str(caught.value).endswith(sentence)
        assert caught.value.sent


async def test_a_stream_that_is_broken_from_its_beginning(tmp_path: Path) -> None:
    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM + b"zz\r\n")  # in one piece: the connection is lost before anybody reads
        writer.close()

    async with serving(answer) as box, connected(tmp_path, box) as transport:
        with pytest.raises(NoAnswer, match=r"ended too early|not HTTP"):
            await rest(await transport.open(HttpRequest(method="GET", path="/watch")))
        with pytest.raises(NoAnswer, match=r"ended too early|not HTTP"):
            await transport.send(HttpRequest(method="GET", path="/list"))


async def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST", 1000)
    async with opened(tmp_path) as (box, script, stream):
        script.say(chunk(b"x" * 5000))
        with pytest.raises(NoAnswer, match="longer than"):
            await rest(stream)
        script.end(b"")
        await until(lambda: box.open == 0)


class TestSilence:
    async def test_it_is_noticed(self, tmp_path: Path) -> None:
        clock = HandClock()
        async with opened(tmp_path, silence=70, clock=clock) as (box, script, stream):
            batches = stream.batches()
            script.say(chunk(b"a\n"))
            assert await anext(batches) == [b"a"]
            waiting = asyncio.ensure_future(anext(batches))
            await until(lambda: clock.waits == [70])
            clock.advance(69)
            script.say(chunk(b"half a line"))  # any byte counts
            await until(lambda: "bytes=13" in repr(stream))
            clock.advance(2)
            await until(lambda: clock.waits == [68])
            assert not waiting.done()
            clock.advance(68)
            with pytest.raises(TooSlow, match=r"^No data arrived for 70 s\.$") as caught:
                await waiting
            assert caught.value.sent
            script.end(b"")
            await until(lambda: box.open == 0)

    async def test_a_night_in_the_bag_is_silence(self, tmp_path: Path) -> None:
        clock = HandClock()
        async with opened(tmp_path, silence=70, clock=clock) as (_, script, stream):
            waiting = asyncio.ensure_future(anext(stream.batches()))
            await until(lambda: clock.waits == [70])
            clock.advance(8 * 3600)
            with pytest.raises(TooSlow):
                await waiting
            script.end(b"")

    async def test_closing_ends_the_watch_over_it(self, tmp_path: Path) -> None:
        clock = HandClock()
        async with opened(tmp_path, silence=70, clock=clock) as (box, script, stream):
            await until(lambda: clock.waits == [70])
            await stream.close()
            await stream.close()
            await until(lambda: clock.waits == [])
            script.end(b"")
            await until(lambda: box.open == 0)


async def test_an_error_is_read_whole(tmp_path: Path) -> None:
    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(plain(b"no\nsuch version", "410 Gone"))

    async with serving(answer) as box, connected(tmp_path, box) as transport:
        for _ in range(2):
            stream = await transport.open(HttpRequest(method="GET", path="/watch", silence=70))
            assert (stream.status, stream.headers["content-length"]) == (410, "15")
            assert await stream.read() == b"no\nsuch version"
        assert box.connections == 1


async def test_an_error_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock=clock) as (_, script, stream):
        script.say(chunk(b"half"))
        reading = asyncio.ensure_future(stream.read())
        await until(lambda: clock.waits == [10])
        clock.advance(10)
        with pytest.raises(TooSlow):
            await reading
        script.end(b"")


async def test_at_most_a_mebibyte_of_an_error_is_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as (_, script, stream):
        script.end(chunk(b"x" * (3 << 20)) + b"0\r\n\r\n")
        assert len(await stream.read()) == 1 << 20


async def test_a_head_that_never_comes(tmp_path: Path) -> None:
    clock, reached = HandClock(), asyncio.Event()

    async def hang(_request: Request, _writer: asyncio.StreamWriter) -> None:
        reached.set()
        await asyncio.Event().wait()

    async with serving(hang) as box, connected(tmp_path, box, clock=clock) as transport:
        opening = asyncio.create_task(transport.open(HttpRequest(method="GET", path="/watch", deadline=30)))
        await reached.wait()
        clock.advance(30)
        with pytest.raises(TooSlow):
            await opening
        assert repr(transport) == f"NetworkTransport({box.url}, calls=0, streams=0, closed=False)"


async def test_a_reader_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, silence=70) as (box, script, stream):
        reading = asyncio.create_task(rest(stream))
        script.say(chunk(b"a\n"))
        await until(lambda: "bytes=2" in repr(stream))
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await stream.close()
        script.end(b"")
        await until(lambda: box.open == 0)


async def test_closing_waits_for_no_goodbye_of_a_server_that_hangs(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    over = threading.Event()

    def hang(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with server_tls().wrap_socket(connection, server_side=True) as tls:
            tls.recv(1 << 16)
            tls.sendall(STREAM + chunk(b"a\n"))
            over.wait()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=hang, args=(listening,))
        server.start()
        try:
            box = Loopback(f"https://127.0.0.1:{listening.getsockname()[1]}")
            async with connected(tmp_path, box) as transport:
                stream = await transport.open(HttpRequest(method="GET", path="/watch", deadline=30))
                assert await anext(stream.batches()) == [b"a"]
                await stream.close()
        finally:
            over.set()
            server.join()
    gc.collect()
    assert [str(warning.message) for warning in recwarn if warning.category is ResourceWarning] == []
