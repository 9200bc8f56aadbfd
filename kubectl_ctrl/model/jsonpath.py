"""kubectl's dialect of JSONPath, as in `kubectl get -o jsonpath` and `kubectl wait --for=jsonpath`.

A template is text with actions in braces: `{.status.phase}`, `{.items[*].metadata.name}`, `{"\\n"}`, and
`{range .items[*]}...{end}`. A path has fields (`.a`, `.a\\.b`, `['a.b']`), indexes and slices (`[-1]`, `[0:4:2]`),
wildcards, unions (`['a','b']`, `[0,2]`), recursive descent (`..name`) and filters (`[?(@.type=="Ready")]`). As in
kubectl, a missing field yields nothing, and an index out of range, or a comparison of a number with a string, is an
error. Unlike in kubectl, dots in a quoted field need no backslash if the object has such a field.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Protocol

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.value import Value

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "'": "'", '"': '"', "\\": "\\", "b": "\b", "f": "\f", "v": "\v"}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# As in kubectl, `.status.phase` and `status.phase` mean `{.status.phase}`.
_RELAXED = re.compile(r"\{\.?([^{}]+)\}|\.?([^{}]+)")
_FIELD = re.compile(r"(?:\\.|[^\s.,\[\]{}()|'\"<>=!\\?@$*~&])+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?![\w.])")
_SLICE = re.compile(r"(-?\d*)(?:(:)(-?\d*))?(?:(:)(-?\d*))?")


class PathStep(Protocol):
    """One part of a path; it maps values to values."""

    def walk(self, values: list[Any]) -> list[Any]: ...


class Field(Value):
    """`.name`; yields nothing for a value without that field."""

    name: str

    def walk(self, values: list[Any]) -> list[Any]:
        return [value[self.name] for value in values if isinstance(value, dict) and self.name in value]


class Quoted(Value):
    """`['a.b']`: the field of that name, or without one the path `.a.b`, which is its only meaning in kubectl."""

    name: str
    path: tuple[Field, ...]

    def walk(self, values: list[Any]) -> list[Any]:
        return [item for value in values for item in Field(self.name).walk([value]) or Path(self.path).find(value)]


class Slice(Value):
    """`[n]` or `[start:stop:step]`."""

    start: int
    stop: int | None
    step: int = 1

    def walk(self, values: list[Any]) -> list[Any]:
        return [item for value in values for item in self._cut(value)]

    def _cut(self, value: Any) -> list[Any]:
        if value is None:
            return []
        if not isinstance(value, list):
            raise UsageError(f"A list was expected, and there is {_kind(value)}.")
        size = len(value)
        start = self.start + (size if self.start < 0 else 0)
        stop = size if self.stop is None else self.stop + (size if self.stop < 0 else 0)
        if start == stop:
            return []
        if not 0 <= start < size or not 0 <= stop <= size:
            raise UsageError(f"The index is out of bounds: the list has {size} items.")
        if start > stop:
            raise UsageError(f"The start {start} of the slice comes after its end {stop}.")
        return value[start : stop : self.step]


class Everything(Value):
    """`[*]` or `.*`: the items of a list, or the values of an object, sorted by key."""

    def walk(self, values: list[Any]) -> list[Any]:
        return [item for value in values for item in _children(value)]


class Descent(Value):
    """`..`: the value and all values inside it."""

    def walk(self, values: list[Any]) -> list[Any]:
        return [item for value in values for item in _descendants(value)]


class Union(Value):
    """`[a,b]`: the results of all members."""

    members: tuple[PathStep, ...]

    def walk(self, values: list[Any]) -> list[Any]:
        return [item for member in self.members for item in member.walk(values)]


class Literal(Value):
    """A string, number or boolean in a filter."""

    value: Any

    def find(self, item: Any) -> list[Any]:
        return [self.value]


class Path(Value):
    """A sequence of steps."""

    steps: tuple[PathStep, ...]

    def find(self, item: Any) -> list[Any]:
        values = [item]
        for step in self.steps:
            values = step.walk(values)
        return values


class Filter(Value):
    """`[?(left OPERATOR right)]`, or `[?(left)]` for items that have it."""

    left: Path | Literal
    operator: str = ""
    right: Path | Literal | None = None

    def walk(self, values: list[Any]) -> list[Any]:
        return [item for value in values if isinstance(value, list) for item in value if self._holds(item)]

    def _holds(self, item: Any) -> bool:
        left = self.left.find(item)
        if self.right is None or not left:
            return bool(left)
        right = self.right.find(item)
        if len(left) > 1 or len(right) > 1:
            raise UsageError("A filter compares one value with one, and there are several.")
        if not right:
            return False
        one, other, ordered = left[0], right[0], self.operator not in ("==", "!=")
        comparable = type(one) is type(other) and isinstance(one, str | int | float | bool)
        if not comparable or (ordered and isinstance(one, bool)):
            raise UsageError(f"{_kind(one)} cannot be compared with {_kind(other)} by {self.operator!r}.".capitalize())
        return _COMPARE[self.operator](one, other)


class Loop(Value):
    """`{range PATH}body{end}`."""

    over: Path
    body: tuple[Part, ...]


Part = str | Path | Loop


class JsonPath:
    """A parsed template."""

    def __init__(self, source: str, parts: tuple[Part, ...]) -> None:
        self.source = source
        self._parts = parts

    @staticmethod
    def parse(source: str) -> JsonPath:
        """UsageError, with the position, for a template that kubectl rejects."""
        return JsonPath(source, _Parser(source).template())

    @staticmethod
    def relaxed(source: str) -> JsonPath:
        """The same for one path, without or with braces and first dot, as in kubectl's flags."""
        found = _RELAXED.fullmatch(source)
        return JsonPath.parse("{." + (found[1] or found[2]) + "}" if found else source)

    def find(self, data: Any) -> list[list[Any]]:
        """The values of each action, in order, without text."""
        return [found for found in _found(self._parts, data) if isinstance(found, list)]

    @staticmethod
    def column(source: str) -> JsonPath:
        """The same, but only one path, for a column or --sort-by. "" yields nothing."""
        if source and not _RELAXED.fullmatch(source):
            raise UsageError(f"{source!r} is not one path.", next_step="write it like .name1.name2 or {.name1.name2}")
        return JsonPath.relaxed(source)

    def text(self, data: Any, shown: Callable[[Any], str] | None = None) -> str:
        """The output of `kubectl get -o jsonpath=`; `shown` formats each value."""
        shown = shown or _shown
        return "".join(one if isinstance(one, str) else " ".join(map(shown, one)) for one in _found(self._parts, data))

    def lists(self, data: Any) -> list[list[Any]]:
        """The values of each action and text, in order: the output of `-o jsonpath-as-json=`."""
        return [[found] if isinstance(found, str) else found for found in _found(self._parts, data)]

    def __repr__(self) -> str:
        return f"JsonPath({self.source!r})"


def _found(parts: tuple[Part, ...], data: Any) -> Iterator[str | list[Any]]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Path):
            yield part.find(data)
        else:
            for item in part.over.find(data):
                yield from _found(part.body, item)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def _descendants(value: Any) -> Iterator[Any]:
    yield value
    for child in _children(value):
        yield from _descendants(child)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _kind(value: Any) -> str:
    names = {str: "a string", bool: "a boolean", int: "a whole number", float: "a number", list: "a list"}
    return names.get(type(value), "nothing" if value is None else "an object")


class _Parser:
    """A recursive descent parser."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def template(self) -> tuple[Part, ...]:
        parts, ended = self._parts(inside=False)
        assert not ended
        return parts

    def _parts(self, *, inside: bool) -> tuple[tuple[Part, ...], bool]:
        """Up to the end of the template, or of the current range."""
        parts: list[Part] = []
        while self._at < len(self._source):
            brace = self._source.find("{", self._at)
            end = len(self._source) if brace < 0 else brace
            if end > self._at:
                parts.append(self._source[self._at : end])
            self._at = end
            if brace < 0:
                break
            self._at += 1
            if self._word("end"):
                if not inside:
                    self._fail("there is no range to end", self._at - 3)
                self._expect("}")
                return tuple(parts), True
            parts.append(self._action())
        if inside:
            self._fail("a range is not ended", len(self._source))
        return tuple(parts), False

    def _action(self) -> Part:
        if self._word("range"):
            over = self._path("}")
            self._expect("}")
            return Loop(over, self._parts(inside=True)[0])
        self._space()
        if self._peek() in ("'", '"'):
            text = self._quoted()
            self._expect("}")
            return text
        path = self._path("}")
        self._expect("}")
        return path

    def _path(self, stop: str) -> Path:
        """Steps up to a character of `stop`, or the end; the root may be `$` or `@`."""
        steps: list[PathStep] = []
        self._space()
        if self._peek() in ("$", "@"):
            self._at += 1
        elif self._peek() not in (".", "[", stop[0]) and not steps:
            steps.append(self._field())
        while self._space() and self._peek() not in ("", *stop):
            steps += self._steps()
        return Path(tuple(steps))

    def _steps(self) -> list[PathStep]:
        if self._peek() == "[":
            return [self._brackets()]
        if self._peek() != ".":
            self._fail("a dot or a bracket was expected", self._at)
        self._at += 1
        if self._peek() == ".":
            self._at += 1
            return [Descent(), *([] if self._peek() in ("[", "}", "") else [self._field()])]
        if self._peek() in ("[", "}", ")", ""):
            return []  # `{.}` is the root
        return [self._field()]

    def _field(self) -> PathStep:
        if self._peek() == "*":
            self._at += 1
            return Everything()
        found = _FIELD.match(self._source, self._at)
        if found is None:
            self._fail("a field was expected", self._at)
        self._at = found.end()
        return Field(re.sub(r"\\(.)", r"\1", found[0]))

    def _brackets(self) -> PathStep:
        self._expect("[")
        members = [self._member()]
        while self._space() and self._peek() == ",":
            self._at += 1
            members.append(self._member())
        self._expect("]")
        return members[0] if len(members) == 1 else Union(tuple(members))

    def _member(self) -> PathStep:
        self._space()
        if self._peek() == "*":
            self._at += 1
            return Everything()
        if self._peek() in ("'", '"'):
            return self._quoted_field()
        if self._source.startswith("?(", self._at):
            return self._filter()
        return self._slice()

    def _quoted_field(self) -> PathStep:
        began = self._at + 1
        name = self._quoted()
        parts = re.split(r"(?<!\\)\.", self._source[began : self._at - 1])
        path = tuple(Field(re.sub(r"\\(.)", r"\1", part)) for part in parts)
        return Quoted(name, path) if len(path) > 1 else Field(name)

    def _slice(self) -> Slice:
        began = self._at
        found = _SLICE.match(self._source, began)
        if found is None or found[0] in ("", "-"):
            self._fail("an index, a slice, a quoted field, * or ?( was expected", began)
        self._at = found.end()
        start, step = int(found[1] or 0), int(found[5] or 1)
        if step < 1:
            self._fail("the step of a slice must be at least 1", began)
        if not found[2]:
            return Slice(start, start + 1 if start != -1 else None)
        return Slice(start, int(found[3]) if found[3] else None, step)

    def _filter(self) -> Filter:
        self._at += 2
        left = self._operand()
        self._space()
        found = re.compile(r"[=!<>&|~]+").match(self._source, self._at)
        if found is None:
            self._expect(")")
            return Filter(left)
        if found[0] not in _COMPARE:
            self._fail(f"{found[0]!r} is none of {' '.join(_COMPARE)}", self._at)
        self._at = found.end()
        right = self._operand()
        self._space()
        self._expect(")")
        return Filter(left, found[0], right)

    def _operand(self) -> Path | Literal:
        self._space()
        if self._peek() in ("'", '"'):
            return Literal(self._quoted())
        if found := _NUMBER.match(self._source, self._at):
            self._at = found.end()
            return Literal(float(found[0]) if "." in found[0] else int(found[0]))
        for word, value in (("true", True), ("false", False)):
            if self._word(word):
                return Literal(value)
        return self._path(")=!<>&|~")

    def _quoted(self) -> str:
        mark, began = self._source[self._at], self._at
        self._at += 1
        text = ""
        while (char := self._peek()) != mark:
            if not char:
                self._fail("a quote is not closed", began)
            self._at += 1
            if char == "\\":
                char = _ESCAPES.get(self._peek(), self._peek())
                self._at += 1
            text += char
        self._at += 1
        return text

    def _word(self, word: str) -> bool:
        """Consume the word if it is next."""
        found = re.compile(rf"\s*{word}(?![\w\\.-])\s*").match(self._source, self._at)
        if found:
            self._at = found.end()
        return found is not None

    def _space(self) -> bool:
        while self._peek().isspace():
            self._at += 1
        return True

    def _expect(self, symbol: str) -> None:
        self._space()
        if self._peek() != symbol:
            self._fail(f"{symbol!r} was expected", self._at)
        self._at += 1

    def _peek(self) -> str:
        return self._source[self._at : self._at + 1]

    def _fail(self, problem: str, at: int) -> NoReturn:
        raise UsageError(f"The JSONPath {self._source!r} is wrong at position {at + 1}: {problem}.")
