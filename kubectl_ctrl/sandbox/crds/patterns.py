"""Regular expressions with the syntax and the linear time of Go's regexp package.

Python's own module accepts other expressions, and some of those that both accept need exponential time there. Here an
expression becomes a state machine whose sets of states are computed as texts need them, and then kept.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Test = Callable[[str], bool]
# A part of an expression: ("test", Test), ("look", name), ("all", [parts]), ("any", [parts]), ("repeat", part, n, m)
Part = tuple[Any, ...]

_MOST_REPEATS = 1000
_MOST_STEPS = 50_000
_MOST_KEPT = 20_000
_START, _WORD, _LINE, _OTHER = "start", "word", "line", "other"  # what is before a place in the text
_END = ""
_CLASSES: dict[str, Test] = {
    "d": lambda char: "0" <= char <= "9",
    "s": lambda char: char in "\t\n\f\r ",
    "w": lambda char: char.isascii() and (char.isalnum() or char == "_"),
}
_POSIX: dict[str, Test] = {
    "alnum": lambda char: char.isascii() and char.isalnum(),
    "alpha": lambda char: char.isascii() and char.isalpha(),
    "ascii": str.isascii,
    "blank": lambda char: char in "\t ",
    "cntrl": lambda char: char < " " or char == "\x7f",
    "digit": _CLASSES["d"],
    "graph": lambda char: "!" <= char <= "~",
    "lower": lambda char: "a" <= char <= "z",
    "print": lambda char: " " <= char <= "~",
    "punct": lambda char: "!" <= char <= "~" and not char.isalnum(),
    "space": lambda char: char in "\t\n\v\f\r ",
    "upper": lambda char: "A" <= char <= "Z",
    "word": _CLASSES["w"],
    "xdigit": lambda char: char in "0123456789abcdefABCDEF",
}
_ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_LOOKS = {"A": "start", "z": "end", "b": "edge", "B": "inside"}
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


class BadPattern(ValueError):
    """The expression is not one of Go's; the text is Go's message."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {what}: `{where}`")


def found(pattern: str, text: str) -> bool:
    """Whether the expression matches somewhere in the text. An invalid one matches nothing."""
    try:
        return compiled(pattern).is_in(text)
    except BadPattern:
        return False


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Machine:
    return Machine(_Parser(pattern).parsed())


class Machine:
    """The states are places in a list of steps; each is a test of one character, a look, a fork, or the end."""

    def __init__(self, part: Part) -> None:
        self._steps: list[tuple[Any, ...]] = [("end",)]
        self._start = self._add(part, 0)
        self._kept: dict[tuple[frozenset[int], str, str], tuple[bool, frozenset[int]]] = {}

    def is_in(self, text: str) -> bool:
        states: frozenset[int] = frozenset()
        before = _START
        for char in (*text, _END):
            key = (states, before, char)
            if key not in self._kept:
                if len(self._kept) > _MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = self._next(*key)
            ended, states = self._kept[key]
            if ended:
                return True
            before = _LINE if char == "\n" else _WORD if _CLASSES["w"](char) else _OTHER
        return False

    def _next(self, states: frozenset[int], before: str, char: str) -> tuple[bool, frozenset[int]]:
        """Whether the end is reached before this character, and the states after it."""
        reached: set[int] = set()
        ahead, after = [*states, self._start], set()
        while ahead:
            place = ahead.pop()
            if place in reached:
                continue
            reached.add(place)
            match self._steps[place]:
                case ("end",):
                    return True, frozenset()
                case ("fork", *places):
                    ahead += places
                case ("look", name, place):
                    if _holds(name, before, char):
                        ahead.append(place)
                case ("test", test, place) if char != _END and test(char):
                    after.add(place)
        return False, frozenset(after)

    def _add(self, part: Part, then: int) -> int:
        """The first step of a part that continues at `then`."""
        match part:
            case ("test" | "look", what):
                return self._put(part[0], what, then)
            case ("all", parts):
                for one in reversed(parts):
                    then = self._add(one, then)
                return then
            case ("any", parts):
                return self._put("fork", *(self._add(one, then) for one in parts))
        _, one, least, most = part
        if most is None:
            loop = self._put("fork")
            self._steps[loop] = ("fork", self._add(one, loop), then)
            place = loop
        else:
            place = then
            for _ in range(most - least):
                place = self._put("fork", self._add(one, place), then)
        for _ in range(least):
            place = self._add(one, place)
        return place

    def _put(self, *step: Any) -> int:
        if len(self._steps) >= _MOST_STEPS:
            raise BadPattern("expression too large", "")
        self._steps.append(step)
        return len(self._steps) - 1


def _holds(name: str, before: str, char: str) -> bool:
    match name:
        case "start":
            return before == _START
        case "end":
            return char == _END
        case "line start":
            return before in (_START, _LINE)
        case "line end":
            return char in (_END, "\n")
    edge = (before == _WORD) != (char != _END and _CLASSES["w"](char))
    return edge == (name == "edge")


class _Parser:
    """Recursive descent over the text of an expression."""

    def __init__(self, text: str) -> None:
        self._text = _unquoted(text)
        self._place = 0
        self._flags = frozenset[str]()

    def parsed(self) -> Part:
        part = self._choice()
        if self._place < len(self._text):
            raise BadPattern("unexpected )", self._text)
        return part

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._place)

    def _take(self, text: str) -> bool:
        if not self._peek(text):
            return False
        self._place += len(text)
        return True

    def _char(self) -> str:
        self._place += 1
        return self._text[self._place - 1]

    def _choice(self) -> Part:
        flags, choices = self._flags, [self._sequence()]
        while self._take("|"):
            choices.append(self._sequence())
        self._flags = flags
        return choices[0] if len(choices) == 1 else ("any", choices)

    def _sequence(self) -> Part:
        parts: list[Part] = []
        while self._place < len(self._text) and not (self._peek("|") or self._peek(")")):
            start = self._place
            part = self._atom()
            parts.append(self._repeated(part, start) if part else ("all", []))
        return ("all", parts)

    def _repeated(self, part: Part, start: int) -> Part:
        repeats = operator = 0
        while counts := self._counts():
            if repeats:
                raise BadPattern("invalid nested repetition operator", self._text[operator : self._place])
            operator, repeats = counts[2], repeats + 1
            self._take("?")
            part = ("repeat", part, counts[0], counts[1])
        return part

    def _counts(self) -> tuple[int, int | None, int] | None:
        """The numbers of a repetition operator, and its place."""
        start = self._place
        for operator, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._take(operator):
                return least, most, start
        if not self._peek("{"):
            return None
        inside, brace, _ = self._text[start + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        if not brace or not low.isdecimal() or not (high.isdecimal() or not high):
            return None  # plain text
        self._place += len(inside) + 2
        numbers = int(low), int(high) if high else (None if comma else int(low))
        if max(numbers[0], numbers[1] or 0) > _MOST_REPEATS or (numbers[1] is not None and numbers[0] > numbers[1]):
            raise BadPattern("invalid repeat count", self._text[start : self._place])
        return *numbers, start

    def _atom(self) -> Part | None:
        """One part that can be repeated; None after a change of flags."""
        if (counts := self._counts()) is not None:
            raise BadPattern("missing argument to repetition operator", self._text[counts[2] : self._place])
        match self._char():
            case "(":
                return self._group()
            case "[":
                return ("test", self._class())
            case ".":
                return ("test", (lambda _: True) if "s" in self._flags else (lambda char: char != "\n"))
            case "^":
                return ("look", "line start" if "m" in self._flags else "start")
            case "$":
                return ("look", "line end" if "m" in self._flags else "end")
            case "\\":
                return self._escaped()
            case char:
                return ("test", self._literal(char))

    def _group(self) -> Part | None:
        start, flags = self._place - 1, self._flags
        if self._take("?"):
            name, closed, _ = self._text[self._place :].partition(">")
            if name.startswith(("P<", "<")) and not name.startswith(("<=", "<!")):
                self._place += len(name) + 1
                word = name.removeprefix("P").removeprefix("<")
                if not closed or not word or not all(map(_CLASSES["w"], word)):
                    raise BadPattern("invalid named capture", self._text[start : self._place])
            elif not self._set_flags(start):
                return None
        part = self._choice()
        if not self._take(")"):
            raise BadPattern("missing closing )", self._text)
        self._flags = flags
        return part

    def _set_flags(self, start: int) -> bool:
        """The flags of a group; False if they are for the rest of the outer group."""
        sign = True
        while self._place < len(self._text):
            match self._char():
                case "i" | "m" | "s" | "U" as flag:
                    self._flags = self._flags | {flag} if sign else self._flags - {flag}
                case "-" if sign:
                    sign = False
                case ":":
                    return True
                case ")":
                    return False
                case _:
                    break
        raise BadPattern("invalid or unsupported Perl syntax", self._text[start : self._place])

    def _escaped(self) -> Part:
        start = self._place - 1
        if self._place == len(self._text):
            raise BadPattern("trailing backslash at end of expression", "")
        if self._text[self._place] in _LOOKS:
            return ("look", _LOOKS[self._char()])
        test = self._class_escape()
        return ("test", test or self._literal(self._escaped_char(start)))

    def _class_escape(self) -> Test | None:
        """A Perl or Unicode class after a backslash."""
        char = self._text[self._place : self._place + 1]
        if char.lower() in _CLASSES:
            self._place += 1
            return _negated(_CLASSES[char.lower()], char.isupper())
        if char not in ("p", "P") or not char:
            return None
        start = self._place - 1
        self._place += 1
        if self._take("{"):
            name, closed, _ = self._text[self._place :].partition("}")
            self._place += len(name) + 1
        else:
            name, closed = self._text[self._place : self._place + 1], "}"
            self._place += 1
        if not closed or not name:
            raise BadPattern("invalid character class range", self._text[start:])
        return _negated(_unicode(name.removeprefix("^")), (char == "P") != name.startswith("^"))

    def _escaped_char(self, start: int) -> str:
        char = self._char()
        if char == "x":
            inside, closed, _ = self._text[self._place :].partition("}")
            braces = inside.startswith("{")
            digits = inside[1:] if braces else self._text[self._place : self._place + 2]
            self._place += len(digits) + (2 if braces else 0)
            if digits and all(map(_POSIX["xdigit"], digits)) and (closed or not braces) and int(digits, 16) < 0x110000:
                return chr(int(digits, 16))
        elif char in _ESCAPES:
            return _ESCAPES[char]
        elif char in _PUNCTUATION:
            return char
        elif char == "0" or (char in "1234567" and self._text[self._place : self._place + 1] in tuple("01234567")):
            while len(char) < 3 and self._text[self._place : self._place + 1] in tuple("01234567"):
                char += self._char()
            return chr(int(char, 8))
        raise BadPattern("invalid escape sequence", self._text[start : self._place])

    def _literal(self, char: str) -> Test:
        if "i" in self._flags:
            return lambda given: given == char or given.casefold() == char.casefold()
        return lambda given: given == char

    def _class(self) -> Test:
        start = self._place - 1
        negated = self._take("^")
        tests = list(self._members(start))
        if "i" in self._flags:
            return _negated(lambda char: any(test(one) for test in tests for one in _cases(char)), negated)
        return _negated(lambda char: any(test(char) for test in tests), negated)

    def _members(self, start: int) -> Iterator[Test]:
        first = True
        while first or not self._peek("]"):
            first = False
            if self._place >= len(self._text):
                raise BadPattern("missing closing ]", self._text[start:])
            yield self._posix() or self._range(start)
        self._place += 1

    def _posix(self) -> Test | None:
        if not self._peek("[:"):
            return None
        name, closed, _ = self._text[self._place + 2 :].partition(":]")
        if not closed:
            return None
        self._place += len(name) + 4
        if name.removeprefix("^") not in _POSIX:
            raise BadPattern("invalid character class range", f"[:{name}:]")
        return _negated(_POSIX[name.removeprefix("^")], name.startswith("^"))

    def _range(self, start: int) -> Test:
        begin = self._place
        if self._take("\\") and (test := self._class_escape()):
            return test
        self._place = begin
        low = high = self._member(start)
        if self._peek("-") and self._text[self._place + 1 : self._place + 2] not in ("]", ""):
            self._place += 1
            high = self._member(start)
            if high < low:
                raise BadPattern("invalid character class range", self._text[begin : self._place])
        return lambda char: low <= char <= high

    def _member(self, start: int) -> str:
        if self._place >= len(self._text):
            raise BadPattern("missing closing ]", self._text[start:])
        char = self._char()
        if char != "\\":
            return char
        if self._place == len(self._text):
            raise BadPattern("trailing backslash at end of expression", "")
        return self._escaped_char(self._place - 1)


def _unquoted(text: str) -> str:
    r"""The text without \Q and \E, and with a backslash before each character between them."""
    parts = re.split(r"(\\\\|\\Q(?:.|\n)*?(?:\\E|\Z))", text)
    for at, part in enumerate(parts):
        if part.startswith("\\Q"):
            quoted = part[2:].removesuffix("\\E")
            parts[at] = "".join(f"\\{char}" if char in _PUNCTUATION else char for char in quoted)
    return "".join(parts)


def _negated(test: Test, negated: bool) -> Test:
    return (lambda char: not test(char)) if negated else test


def _cases(char: str) -> tuple[str, ...]:
    return char, char.lower(), char.upper()


def _unicode(name: str) -> Test:
    """A general category, or a script by the names of its characters."""
    if name == "Any":
        return lambda _: True
    if len(name) <= 2:
        if name[:1] not in "CLMNPSZ":
            raise BadPattern("invalid character class range", f"\\p{{{name}}}")
        return lambda char: unicodedata.category(char).startswith(name)
    script = name.upper().replace("_", " ")
    if script == "HAN":
        script = "CJK"
    return lambda char: unicodedata.name(char, "").startswith(script)
