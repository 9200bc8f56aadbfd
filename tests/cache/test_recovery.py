from __future__ import annotations

import pytest

from kubectl_ctrl.cache.recovery import FailureCounter, InformerState, Pace, Recovery, after_list, after_watch
from kubectl_ctrl.client.watch import EndKind, WatchEnd
from kubectl_ctrl.errors import (
    ApiError,
    BadRequest,
    CallSite,
    CtrlError,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    Refused,
    ServerError,
    StatusCause,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)

SITE = CallSite("watch", "pods")
AWAY = Unreachable("Away.", site=SITE)


def api(cls: type[ApiError], code: int, *, reason: str = "", retry_after: float | None = None) -> ApiError:
    causes = (StatusCause(reason=reason, message=""),) if reason else ()
    return cls("Said no.", site=SITE, code=code, causes=causes, retry_after=retry_after)


def end(kind: EndKind, error: CtrlError | None = None, *, lasted: float = 60.0, events: int = 1) -> WatchEnd:
    return WatchEnd(kind=kind, error=error, lasted=lasted, events=events)


def brief(recovery: Recovery) -> str:
    words = ["relist" if recovery.relist else "resume", "paged" if recovery.paged else "", recovery.pace.value]
    words.append(recovery.state.value if recovery.state is not None else "fine")
    return " ".join(word for word in words if word)


@pytest.mark.parametrize(
    ("ended", "watching", "listing"),
    [
        (end(EndKind.CLOSED), "resume now fine", "relist paged backoff retrying"),
        (end(EndKind.CLOSED, lasted=0.5), "resume steady fine", "relist paged backoff retrying"),
        (end(EndKind.CLOSED, lasted=0.5, events=0), "resume backoff retrying", "relist paged backoff retrying"),
        (end(EndKind.SILENT), "resume now fine", "relist paged now retrying"),
        (end(EndKind.EXPIRED, api(Expired, 410)), "relist backoff retrying", "relist backoff retrying"),
        (end(EndKind.BROKEN), "resume backoff retrying", "relist backoff retrying"),
        (
            end(EndKind.UNREACHABLE, AWAY),
            "resume backoff retrying",
            "relist backoff retrying",
        ),
        (end(EndKind.REFUSED, api(TooManyRequests, 429)), "resume backoff retrying", "relist backoff retrying"),
        (end(EndKind.REFUSED, api(ServerError, 500)), "resume backoff retrying", "relist backoff retrying"),
        (end(EndKind.REFUSED, api(Unauthorized, 401)), "resume backoff retrying", "relist backoff retrying"),
        (end(EndKind.REFUSED, api(Forbidden, 403)), "resume backoff forbidden", "relist backoff forbidden"),
        (end(EndKind.REFUSED, api(NotFound, 404)), "relist backoff missing", "relist backoff missing"),
        (end(EndKind.REFUSED, api(Invalid, 422)), "resume backoff retrying", "relist paged now fine"),
        (end(EndKind.REFUSED, api(BadRequest, 400)), "resume backoff retrying", "relist paged now fine"),
        (end(EndKind.REFUSED, Refused("Another cluster.")), "resume backoff refused", "relist backoff refused"),
        (
            end(EndKind.REFUSED, api(ServerError, 504, reason="ResourceVersionTooLarge")),
            "relist backoff retrying",
            "relist backoff retrying",
        ),
    ],
)
def test_what_follows_each_end(ended: WatchEnd, watching: str, listing: str) -> None:
    assert brief(after_watch(ended, listing=False)) == watching
    assert brief(after_watch(ended, listing=True)) == listing


def test_what_the_server_asked_for_is_kept() -> None:
    ended = WatchEnd(kind=EndKind.REFUSED, error=api(TooManyRequests, 429), retry_after=7.0)
    assert after_watch(ended, listing=False).at_least == 7.0
    recovery = after_list(api(TooManyRequests, 429, retry_after=9.0))
    assert (recovery.at_least, recovery.relist, recovery.pace, recovery.state) == (
        9.0,
        True,
        Pace.BACKOFF,
        InformerState.RETRYING,
    )


def test_type_that_the_server_begins_to_serve_is_asked_for_again_and_nothing_is_wrong() -> None:
    error = TooManyRequests("Turned away (429): storage is (re)initializing.", site=SITE, code=429, retry_after=1.0)
    ended = WatchEnd(kind=EndKind.REFUSED, error=error, retry_after=1.0)
    assert after_watch(ended, listing=True) == after_list(error)
    recovery = after_list(error)
    assert (recovery.relist, recovery.at_least, recovery.state) == (True, 1.0, None)


def test_second_silence_in_a_row_lists_and_a_word_in_between_does_not() -> None:
    doubts, silent = FailureCounter(), end(EndKind.SILENT)
    assert [doubts.ended(silent), doubts.ended(silent)] == [False, True]
    doubts.heard()
    assert doubts.ended(silent) is False
    doubts.heard()
    assert doubts.ended(silent) is False


def test_server_without_bookmarks_is_listed_ever_more_rarely_while_nothing_happens() -> None:
    doubts, silent = FailureCounter(), end(EndKind.SILENT)
    assert [number for number in range(1, 63) if doubts.ended(silent)] == [2, 6, 14, 30, 46, 62]
    doubts.heard()
    assert [doubts.ended(silent) for _ in range(2)] == [False, True]


def test_third_broken_watch_in_a_row_lists() -> None:
    doubts, broken = FailureCounter(), end(EndKind.BROKEN)
    assert [doubts.ended(broken) for _ in range(6)] == [False, False, True, False, False, True]
    unreachable = end(EndKind.UNREACHABLE, AWAY)
    assert not any(doubts.ended(unreachable) for _ in range(20))
