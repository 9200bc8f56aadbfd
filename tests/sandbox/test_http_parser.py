"""Bytes become the same requests however they are split, and the same as an independent parser reads."""

from __future__ import annotations

from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ctrl.sandbox.http.parser import Malformed, ReceivedRequest, RequestParser

LIMIT = 100
HEAD_LIMIT = 400


def parsed(*pieces: bytes) -> tuple[list[ReceivedRequest], int | None]:
    """The requests, and the status of the refusal after them."""
    parser, found = RequestParser(LIMIT, HEAD_LIMIT), []
    try:
        for piece in pieces:
            parser.feed(piece)
            while (request := parser.take()) is not None:
                found.append(request)
    except Malformed as error:
        with pytest.raises(Malformed):
            parser.take()
        return found, error.status
    return found, None


def one(data: bytes) -> ReceivedRequest:
    requests, refused = parsed(data)
    assert (len(requests), refused) == (1, None)
    return requests[0]


def refused(data: bytes) -> int | None:
    requests, status = parsed(data)
    assert requests == []
    return status


def test_a_request_has_its_target_its_headers_and_its_body() -> None:
    request = one(b"POST /a%20b?x=1 HTTP/1.1\r\nHost: localhost\r\nX-Two:  a b \t\r\nContent-Length: 3\r\n\r\nabc")
    assert (request.method, request.target, request.host, request.body) == ("POST", "/a%20b?x=1", "localhost", b"abc")
    assert request.headers == {"host": "localhost", "x-two": "a b", "content-length": "3"}
    assert request.keeps


def test_repeated_headers_are_joined() -> None:
    request = one(b"GET / HTTP/1.1\r\nHost: a\r\nImpersonate-Group: x\r\nimpersonate-group: y\r\n\r\n")
    assert request.headers["impersonate-group"] == "x, y"


def test_chunks_with_extensions_and_a_trailer() -> None:
    head = b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
    assert one(head + b'3;x="y"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\n').body == b"abc0123456789"
    assert one(head + b"0\r\n\r\n").body == b""


def test_a_connection_is_kept_unless_the_client_closes_it() -> None:
    assert not one(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n").keeps
    assert not one(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keeps


def test_a_target_may_name_its_host() -> None:
    request = one(b"GET http://evil:1?x=y HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (request.host, request.target) == ("evil:1", "/?x=y")


def test_a_body_that_is_too_large_is_discarded() -> None:
    head = b"PUT / HTTP/1.1\r\nHost: a\r\n"
    end = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
    for body in (
        b"Content-Length: 101\r\n\r\n" + b"x" * 101,
        b"Transfer-Encoding: chunked\r\n\r\n" + b"33\r\n" + b"x" * 51 + b"\r\n32\r\n" + b"x" * 50 + b"\r\n0\r\n\r\n",
    ):
        (first, second), refusal = parsed(head + body + end)
        assert (first.too_large, first.body, second.target, refusal) == (True, b"", "/next", None)
    assert refused(head + b"Content-Length: 999999999\r\n\r\n") == 413
    assert refused(head + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n") == 413
    assert refused(head + b"Expect: 100-continue\r\nContent-Length: 101\r\n\r\n") == 413


def test_a_client_may_wait_for_100_continue() -> None:
    parser = RequestParser(LIMIT)
    parser.feed(b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n")
    assert parser.take() is None
    assert parser.awaits_continue
    parser.feed(b"x")
    assert parser.take() is not None
    assert not parser.awaits_continue


@pytest.mark.parametrize(
    ("status", "data"),
    [
        (400, b"GET / HTTP/1.1\nHost: a\n\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\n\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
        (400, b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (400, b"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (400, b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"),
        (400, b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx"),
        (400, b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nx"),
        (400, b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n"),
        (400, b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n"),
        (400, b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n"),
        (417, b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n"),
        (431, b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * HEAD_LIMIT + b"\r\n\r\n"),
        (501, b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
        (501, b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (505, b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    ],
)
def test_refused(status: int, data: bytes) -> None:
    assert refused(data) == status
    assert parsed(*(data[index : index + 1] for index in range(len(data)))) == ([], status)


# -- any bytes

_GOOD = st.sampled_from(
    [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PUT /x?y=z HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabc\r\n",
        b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;e\r\nc\r\n0\r\nT: u\r\n\r\n",
        b"POST /d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"PUT /large HTTP/1.1\r\nHost: a\r\nContent-Length: 120\r\n\r\n" + b"GET / HTTP/1.1\r\nHost: a\r\n\r\n___" * 4,
        b"GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ]
)
_SNIPPETS = st.sampled_from(
    [
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b"0",
        b"1",
        b"\0",
        b"x: y\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Host: b\r\n",
        b"\x80",
        b",",
        b"HTTP/1.1",
        b"x" * 90,
    ]
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Good requests with a few changes."""
    data = bytearray(b"".join(draw(st.lists(_GOOD, min_size=1, max_size=4))))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        cut = draw(st.sampled_from([0, 0, 1, 2, 10]))
        data[at : at + cut] = draw(_SNIPPETS)
    return bytes(data)


@given(streams(), st.lists(st.integers(0, 600), max_size=12))
def test_any_split_gives_the_same_requests(data: bytes, cuts: list[int]) -> None:
    whole = parsed(data)
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    assert parsed(*(data[start:end] for start, end in pairwise(places))) == whole
    assert parsed(*(data[index : index + 1] for index in range(len(data)))) == whole


def _read_by_h11(data: bytes) -> list[tuple[str, str, dict[str, str], bytes]]:
    connection, found = h11.Connection(h11.SERVER, max_incomplete_event_size=10_000), []
    connection.receive_data(data)
    body = bytearray()
    try:
        while True:
            match connection.next_event():
                case h11.Request() as request:
                    body.clear()
                case h11.Data(data=part):
                    body += part
                case h11.EndOfMessage():
                    headers: dict[str, str] = {}
                    for name, value in request.headers:
                        key, text = name.decode(), value.decode(errors="replace")
                        headers[key] = f"{headers[key]}, {text}" if key in headers else text
                    found.append((request.method.decode(), request.target.decode(), headers, bytes(body)))
                    connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                    connection.send(h11.EndOfMessage())
                    if connection.our_state is h11.MUST_CLOSE:
                        return found
                    connection.start_next_cycle()
                case _:
                    return found
    except h11.RemoteProtocolError:
        return found


@given(streams())
def test_an_accepted_request_is_what_another_parser_reads(data: bytes) -> None:
    requests, _ = parsed(data)
    others = _read_by_h11(data)
    for index, request in enumerate(requests):
        if not request.too_large:
            assert (request.method, request.target, request.headers, request.body) == others[index]
        if not request.keeps:
            return
