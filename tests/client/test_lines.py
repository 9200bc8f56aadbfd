from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ctrl.client import lines
from kubectl_ctrl.client.lines import Lines, LineTooLong


@given(st.lists(st.binary(max_size=6).map(lambda raw: raw.replace(b"a", b"\n")), max_size=20))
def test_however_the_bytes_are_cut_the_lines_are_the_same(pieces: list[bytes]) -> None:
    cutter = Lines()
    found = [line for piece in pieces for line in cutter.feed(piece)]
    *whole, rest = b"".join(pieces).split(b"\n")
    assert found == [line for line in whole if line]
    assert cutter.unfinished == len(rest)


def test_a_line_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST", 100)
    cutter = Lines()
    cutter.feed(b"x" * 100)
    with pytest.raises(LineTooLong):
        cutter.feed(b"x")


def test_a_long_line_is_put_together_once() -> None:
    cutter = Lines()
    for _ in range(1000):
        assert cutter.feed(b"x" * 50) == []
    # The pieces wait as they came; joining them as they come would be quadratic.
    assert [len(part) for part in cutter._parts] == [50] * 1000
    assert cutter.feed(b"y\nz") == [b"x" * 50_000 + b"y"]
    assert cutter.unfinished == 1
