"""When there is colour, and which characters a stream takes: as kubectl decides it."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios

import pytest

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.user import User


class _Stream(io.StringIO):
    def __init__(self, encoding: str = "utf-8", *, terminal: bool = True) -> None:
        super().__init__()
        self._encoding, self._terminal = encoding, terminal

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


def app(flag: str = "auto", *, terminal: bool = True, encoding: str = "utf-8", **environ: str) -> App:
    stream = _Stream(encoding, terminal=terminal)
    return App(out=stream, err=stream, user=User({"TERM": "xterm", **environ}), color_flag=flag)


@pytest.mark.parametrize(
    ("made", "color"),
    [
        (app(), True),
        (app(terminal=False), False),
        (app(TERM="dumb"), False),
        (app(TERM=""), False),
        (app(NO_COLOR="1"), False),
        (app(NO_COLOR=""), False),  # its presence counts
        (app("always", NO_COLOR="", terminal=False), True),
        (app("never"), False),
    ],
)
def test_colour_is_where_kubectl_would_have_it(made: App, *, color: bool) -> None:
    assert made.color is color


@pytest.mark.parametrize(
    ("made", "unicode"),
    [
        (app(), True),
        (app(encoding="ascii"), False),
        (app(encoding="latin-1"), False),
        (app(TERM="dumb"), False),
        (app(LC_ALL="C", LANG="en_GB.UTF-8"), False),
        (app(LC_ALL="", LANG="POSIX"), False),
        (app(LC_CTYPE="C.UTF-8", LANG="C"), True),
    ],
)
def test_only_what_the_stream_takes_is_drawn(made: App, *, unicode: bool) -> None:
    assert made.unicode is unicode


def test_a_terminal_that_tells_no_size_has_eighty_columns() -> None:
    ours, its = pty.openpty()
    with os.fdopen(ours, "rb"), os.fdopen(its, "w") as out:
        assert App(out=out, err=out, user=User({})).width == 80
        fcntl.ioctl(out, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 61, 0, 0))
        assert App(out=out, err=out, user=User({})).width == 61


def test_what_is_kept_lies_in_no_folder_that_depends_on_where_we_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", "relative")
    for home in ("/home/jane", "relative", ""):
        monkeypatch.setenv("HOME", home)
        assert all(path.is_absolute() for path in (app().user.state, app().user.cache, app().user.config_file))
