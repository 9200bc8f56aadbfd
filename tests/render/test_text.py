from __future__ import annotations

import pytest

from kubectl_ctrl.render.text import cut, escaped, table


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("abcdef", None, "abcdef"), ("abcdef", 6, "abcdef"), ("abcdef", 5, "abcd…"), ("abcdef", 1, "…")],
)
def test_cut_keeps_the_beginning_and_tells_that_there_was_more(text: str, width: int | None, shown: str) -> None:
    assert cut(text, width) == shown


def test_what_drives_a_terminal_is_shown_by_its_number() -> None:
    assert escaped("a\x1b[0m\t\x9b\u2028\u202e\ud800é→") == "a\\x1b[0m\\x09\\x9b\\u2028\\u202e\\ud800é→"


def test_columns_are_kubectls() -> None:
    assert table([["foo", "x"], ["longer", ""]], header=["NAME", "FOR"]) == "NAME     FOR\nfoo      x\nlonger"
