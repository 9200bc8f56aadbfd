"""Which of two resourceVersions is newer, when that can be told."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kubectl_ctrl.model.rv import VersionOrder, compare

numbers = st.integers(0, 2**70)
MIRROR = {
    VersionOrder.OLDER: VersionOrder.NEWER,
    VersionOrder.NEWER: VersionOrder.OLDER,
    VersionOrder.EQUAL: VersionOrder.EQUAL,
    VersionOrder.UNKNOWN: VersionOrder.UNKNOWN,
}


@given(numbers, numbers)
def test_numbers_compare_as_numbers_of_any_length(a: int, b: int) -> None:
    expected = VersionOrder.OLDER if a < b else VersionOrder.NEWER if a > b else VersionOrder.EQUAL
    assert compare(str(a), str(b)) == expected


@given(st.text(max_size=4), st.text(max_size=4))
def test_both_directions_agree(a: str, b: str) -> None:
    assert compare(a, b) == MIRROR[compare(b, a)]


@pytest.mark.parametrize(
    ("a", "b"), [("", ""), ("", "5"), ("abc", "5"), ("007", "8"), ("-1", "1"), ("1.5", "2"), ("٣", "4"), ("²", "3")]
)
def test_what_is_no_number_has_no_order(a: str, b: str) -> None:
    assert compare(a, b) == VersionOrder.UNKNOWN


def test_equal_texts_are_equal_whatever_they_mean() -> None:
    assert compare("opaque", "opaque") == VersionOrder.EQUAL
