"""Access to the parts of an edited JSON document: every error names the place."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.objects import Obj

T = TypeVar("T")

_NEEDED: Any = object()
_LATEST = 250_000_000_000  # in the year 9892
_DEEPEST = 200
_SIDES = {"old": "oldHidden", "new": "newHidden"}


class DocumentPart:
    """One value of a document and its place; raises ValueError for an unexpected value."""

    def __init__(self, value: Any, at: str = "") -> None:
        self.value = value
        self.at = at

    # Fields of an object.

    def part(self, name: str, default: Any = _NEEDED) -> DocumentPart:
        fields = self.expect(dict, "an object")
        if name not in fields and default is _NEEDED:
            raise ValueError(f"{self._place(name)} is missing")
        return DocumentPart(fields.get(name, default), self._place(name))

    def parts(self, name: str) -> list[DocumentPart]:
        """The items of a list, none if it is missing."""
        part = self.part(name, [])
        return [DocumentPart(item, f"{part.at}[{place}]") for place, item in enumerate(part.expect(list, "a list"))]

    def has(self, name: str) -> bool:
        return name in self.expect(dict, "an object")

    def items(self) -> Iterator[tuple[str, DocumentPart]]:
        for name, value in self.expect(dict, "an object").items():
            yield name, DocumentPart(value, self._place(name))

    def text(self, name: str, default: Any = _NEEDED) -> str:
        return self.part(name, default).a_text()

    def name(self, name: str) -> str:
        """A string that is never empty, because an empty one would be omitted when the document is written."""
        part = self.part(name)
        text = part.a_text()
        if not text:
            raise part.wrong("a string that is not empty")
        return text

    def number(self, name: str, default: int) -> int:
        value: int = self.part(name, default).expect(int, "a whole number")
        return value

    def moment(self, name: str, default: float) -> float:
        return self.part(name, default).a_moment()

    def flag(self, name: str) -> bool:
        value: bool = self.part(name, False).expect(bool, "true or false")
        return value

    def word(self, name: str, words: Sequence[str]) -> str:
        part = self.part(name)
        if part.value not in words:
            raise part.wrong(f"one of {', '.join(words)}")
        return str(part.value)

    def seed(self, name: str) -> int:
        """A number as a string, because it is too large for some readers of JSON."""
        part = self.part(name, "0")
        if not (isinstance(part.value, str) and part.value.isdecimal() and len(part.value) <= 40):
            raise part.wrong('a number in quotes, such as "42"')
        return int(part.value)

    # The value itself.

    def a_text(self) -> str:
        value: str = self.expect(str, "a string")
        return value

    def a_moment(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("a number")
        if not 0 <= self.value <= _LATEST:
            raise self.wrong("a time in seconds since 1970")
        return float(self.value)

    def an_object(self) -> Obj:
        value: Obj = self.expect(dict, "an object")
        return value

    def two_texts(self) -> tuple[str, str]:
        value = self.value
        if not (isinstance(value, list) and len(value) == 2 and all(isinstance(one, str) for one in value)):
            raise self.wrong("[namespace, name], two strings")
        return value[0], value[1]

    def as_json(self) -> str:
        return json.dumps(self.value, separators=(",", ":"), ensure_ascii=False)

    def one_of(self, known: Mapping[str, T], expected: str) -> T:
        """The entry of `known` with this name."""
        if not isinstance(self.value, str) or self.value not in known:
            raise self.wrong(expected)
        return known[self.value]

    def expect(self, kind: type, expected: str) -> Any:
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            raise self.wrong(expected)
        return self.value

    def wrong(self, expected: str) -> ValueError:
        shown = json.dumps(self.value, ensure_ascii=True)
        return ValueError(
            f"{self.at or 'it'} is {shown if len(shown) < 60 else shown[:57] + '...'}, expected {expected}"
        )

    def _place(self, name: str) -> str:
        return f"{self.at}.{name}" if self.at else name

    def __repr__(self) -> str:
        return f"DocumentPart({self.at!r})"


def is_too_deep(value: Any) -> bool:
    """It is nested more deeply than any object of a cluster, and recursive functions would fail."""
    level = [value]
    for _ in range(_DEEPEST):
        containers = (one for one in level if isinstance(one, dict | list))
        level = [inner for one in containers for inner in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return True


def shown_difference(one: Difference) -> dict[str, Any]:
    """`{path, old, new}`: an absent side is omitted, and a hidden one is `oldHidden` or `newHidden`."""
    fields: dict[str, Any] = {"path": one.path}
    for side, value in (("old", one.old), ("new", one.new)):
        if value is HIDDEN:
            fields[_SIDES[side]] = True
        elif value is not ABSENT:
            fields[side] = value
    return fields


def read_difference(part: DocumentPart) -> Difference:
    fields = part.an_object()
    old, new = (HIDDEN if part.flag(_SIDES[side]) else fields.get(side, ABSENT) for side in ("old", "new"))
    return Difference(path=part.text("path"), old=old, new=new)
