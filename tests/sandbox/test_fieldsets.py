"""Sets of fields in the form of FieldsV1 behave as sets of paths."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from kubectl_ctrl.sandbox.fields import fieldsets
from kubectl_ctrl.sandbox.fields.fieldsets import FieldSet, Path

paths = st.sets(st.lists(st.sampled_from(["f:a", "f:b", "f:c"]), min_size=1, max_size=3).map(tuple), max_size=6)


def fields_at(path: Path) -> FieldSet:
    return reduce(lambda below, element: {element: below}, reversed(path), FieldSet())


def made(chosen: Iterable[Path]) -> FieldSet:
    return reduce(fieldsets.union, map(fields_at, sorted(chosen)), FieldSet())


def members(fields: FieldSet) -> set[Path]:
    return set(fieldsets.in_order(fields))


@given(paths, paths)
def test_sets_have_the_algebra_of_their_paths(one: set[Path], other: set[Path]) -> None:
    left, right = made(one), made(other)
    assert (members(left), members(right)) == (one, other)
    for found, expected in (
        (fieldsets.union(left, right), one | other),
        (fieldsets.difference(left, right), one - other),
        (fieldsets.intersection(left, right), one & other),
    ):
        assert members(found) == expected
        assert found == made(expected)  # there is one form of each set
    assert (left, right) == (made(one), made(other))  # no operation changes its operands
