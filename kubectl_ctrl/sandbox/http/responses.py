"""Answers as bytes, and the refusals for which no API server is needed."""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus

from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.encoding.bodies import LARGEST
from kubectl_ctrl.sandbox.http.parser import Malformed, ReceivedRequest, words

COMPRESSED_FROM = 128 * 1024
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

_BODILESS = frozenset({204, 304})
_OWN = frozenset({"connection", "content-length", "date", "transfer-encoding"})
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# A page of another site reaches this server under a name that its owner points here: such requests are refused.
_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]|kubernetes\.default\.svc)(:[0-9]{1,5})?", re.IGNORECASE)


def refusal(request: ReceivedRequest) -> HttpResponse | None:
    """The answer to a request that does not reach the API server."""
    if request.host is not None and not _HOST.fullmatch(request.host):
        message = f"the Host header {request.host!r} is not a name of this server"
        return answers.Refusal(403, answers.status(403, "Forbidden", message)).response()
    if request.too_large:
        return too_large()
    if "upgrade" in words(request.headers.get("connection", "")) and "upgrade" in request.headers:
        message = "nothing runs in the pods of a sandbox: exec, attach and port-forward are not possible"
        return answers.Refusal(501, answers.status(501, "", message)).response()
    return None


def too_large() -> HttpResponse:
    return answers.too_large(f"limit is {LARGEST}").response()


def failed() -> HttpResponse:
    """The answer if the API server itself failed."""
    return answers.failure(500).response()


def malformed(error: Malformed) -> HttpResponse:
    if error.status == 413:
        return too_large()
    text = f"{error.status} {_phrase(error.status)}: {error}"
    return HttpResponse(status=error.status, headers={"content-type": "text/plain; charset=utf-8"}, body=text.encode())


def is_compressible(request: ReceivedRequest, response: HttpResponse) -> bool:
    if len(response.body) <= COMPRESSED_FROM or "content-encoding" in response.headers:
        return False
    return "gzip" in words(request.headers.get("accept-encoding", ""))


def compressed(response: HttpResponse) -> HttpResponse:
    headers = {**response.headers, "content-encoding": "gzip", "vary": "Accept-Encoding"}
    return HttpResponse(status=response.status, headers=headers, body=gzip.compress(response.body, 1, mtime=0))


def head(response: HttpResponse, now: float, *, closes: bool) -> bytes:
    """The bytes before the body of a complete answer."""
    length = "" if response.status in _BODILESS else f"content-length: {len(response.body)}\r\n"
    return _head(response.status, response.headers, now, closes, length)


def stream_head(status: int, headers: Mapping[str, str], now: float, *, closes: bool, chunked: bool) -> bytes:
    return _head(status, headers, now, closes, "transfer-encoding: chunked\r\n" if chunked else "")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _head(status: int, headers: Mapping[str, str], now: float, closes: bool, length: str) -> bytes:
    fields = "".join([f"{name}: {value}\r\n" for name, value in headers.items() if name not in _OWN])
    end = "connection: close\r\n\r\n" if closes else "\r\n"
    return f"HTTP/1.1 {status} {_phrase(status)}\r\ndate: {_date(int(now))}\r\n{fields}{length}{end}".encode()


@lru_cache
def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    """The names of days and months are English in every locale."""
    at = datetime.fromtimestamp(second, UTC)
    return f"{_DAYS[at.weekday()]}, {at.day:02} {_MONTHS[at.month - 1]} {at:%Y %H:%M:%S} GMT"
