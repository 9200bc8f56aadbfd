from __future__ import annotations

import pytest

from kubectl_ctrl.text import cut, escaped, headed, size_text, table


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [("abcdef", None, "abcdef"), ("abcdef", 6, "abcdef"), ("abcdef", 5, "abcd…"), ("abcdef", 1, "…")],
)
def test_cut_keeps_the_beginning_and_tells_that_there_was_more(text: str, width: int | None, shown: str) -> None:
    assert cut(text, width) == shown


@pytest.mark.parametrize(
    ("width", "lines"),
    [(None, ["run of foo on kind"]), (18, ["run of foo on kind"]), (17, ["run of foo", "  on kind"])],
)
def test_a_header_takes_two_lines_where_one_is_too_narrow(width: int | None, lines: list[str]) -> None:
    assert headed("run of foo", "on kind", width) == lines


def test_what_drives_a_terminal_is_shown_by_its_number() -> None:
    assert escaped("a\x1b[0m\t\x9b\u2028\u202e\ud800é→") == "a\\x1b[0m\\x09\\x9b\\u2028\\u202e\\ud800é→"


def test_columns_are_kubectls() -> None:
    assert table([["foo", "x"], ["longer", ""]], header=["NAME", "FOR"]) == "NAME     FOR\nfoo      x\nlonger"


def test_a_table_draws_together_where_that_has_it_fit() -> None:
    rows, header = [["foo", "deploy", "x" * 69]], ["NAME", "OWNS", "RUNNING"]
    wide, close = f"foo    deploy   {'x' * 69}", f"foo   deploy  {'x' * 69}"
    fitting = {width: table(rows, header=header, width=width).split("\n")[1] for width in (None, 85, 84, 83, 82)}
    assert fitting == {None: wide, 85: wide, 84: close, 83: close, 82: wide}
    assert table([["x" * 9]], header=["NAME"], width=3) == f"NAME\n{'x' * 9}"


@pytest.mark.parametrize(
    ("size", "told"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (99_960, "100 kB"), (12_345_678, "12.3 MB"), (3e9, "3.0 GB")],
)
def test_sizes(size: float, told: str) -> None:
    assert size_text(size) == told
