"""Label selectors in the syntax of kubectl and the API: `app=web,tier in (a, b),!legacy`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NoReturn

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.value import Value

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)?")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SYMBOLS = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


class Requirement(Value, kw_only=True):
    """One condition on one label. `operator` is one of: in, notin, exists, !, >, <."""

    key: str
    operator: str
    values: tuple[str, ...] = ()  # sorted, without duplicates

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        try:
            number, bound = int(value or ""), int(self.values[0])
        except ValueError:
            return False  # a missing label, or one that is not a number
        return number > bound if self.operator == ">" else number < bound

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin" if len(self.values) == 1:
                return f"{self.key}{'=' if self.operator == 'in' else '!='}{self.values[0]}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
        return f"{self.key}{self.operator}{self.values[0]}"


class Selector(Value):
    """All requirements must match; without requirements, everything matches. Equivalent selectors are equal."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False  # a missing LabelSelector: it matches no object

    @staticmethod
    def parse(text: str) -> Selector:
        """Parse it as kubectl -l does; UsageError has the position of the error."""
        return _made(_Parser(text).requirements())

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        """The text for `parse`; UsageError for a selector that matches nothing, which has no text."""
        if self.nothing:
            raise UsageError("A selector that matches nothing cannot be written as text.")
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "Selector(nothing=True)" if self.nothing else f"Selector.parse({str(self)!r})"


def from_label_selector(selector: Obj | None) -> Selector:
    """The selector of a LabelSelector object: None matches nothing, an empty one everything."""
    if selector is None:
        return Selector(nothing=True)
    found = [
        _checked(Requirement(key=key, operator="in", values=(str(value),)))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in selector.get("matchExpressions") or ():
        operator = _OPERATORS.get(expression.get("operator") or "")
        if operator is None:
            raise UsageError(f"The operator {expression.get('operator')!r} in a matchExpressions is not known.")
        values = tuple(sorted(frozenset(map(str, expression.get("values") or ()))))
        found.append(_checked(Requirement(key=expression.get("key") or "", operator=operator, values=values)))
    return _made(found)


def _made(requirements: list[Requirement]) -> Selector:
    return Selector(tuple(sorted(requirements, key=lambda one: (one.key, one.operator, one.values))))


def _problem(requirement: Requirement) -> str:
    prefix, slash, name = requirement.key.rpartition("/")
    if not _NAME.fullmatch(name) or (slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix))):
        return f"{requirement.key!r} is not a label key"
    if requirement.operator in ("in", "notin") and not requirement.values:
        return f"{requirement.operator!r} needs at least one value"
    if requirement.operator in ("exists", "!") and requirement.values:
        return f"{requirement.key!r} has values, which the operators Exists and DoesNotExist do not allow"
    for value in requirement.values:
        if value and not _NAME.fullmatch(value):
            return f"{value!r} is not a label value"
        if requirement.operator in ("<", ">") and not re.fullmatch(r"-?[0-9]+", value):
            return f"{value!r} is not a whole number"
    return ""


def _checked(requirement: Requirement) -> Requirement:
    if problem := _problem(requirement):
        raise UsageError(f"The label selector is wrong: {problem}.")
    return requirement


class _Parser:
    """A recursive descent parser; each method consumes the tokens that it is named after."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._peek() == "":
            return found
        while True:
            at = self._place()
            requirement = self._requirement()
            if problem := _problem(requirement):
                self._fail(problem, at)
            found.append(requirement)
            if self._peek() == "":
                return found
            self._expect(",")

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return Requirement(key=self._word("a label key"), operator="!")
        key = self._word("a label key")
        match self._peek():
            case "" | ",":
                return Requirement(key=key, operator="exists")
            case "=" | "==":
                return Requirement(key=key, operator="in", values=self._value())
            case "!=":
                return Requirement(key=key, operator="notin", values=self._value())
            case ("<" | ">" | "in" | "notin") as operator:
                values = self._values() if operator in ("in", "notin") else self._value()
                return Requirement(key=key, operator=operator, values=values)
        return self._fail(f"an operator (=, !=, in, notin, <, >) is expected after {key!r}", self._place())

    def _value(self) -> tuple[str, ...]:
        """The value after an operator; a missing one is the empty value."""
        self._take()
        return ("",) if self._peek() in ("", ",") else (self._word("a value"),)

    def _values(self) -> tuple[str, ...]:
        self._take()
        self._expect("(")
        values: list[str] = []
        if self._peek() != ")":
            values.append(self._listed())
        while self._peek() == ",":
            self._take()
            values.append(self._listed())
        self._expect(")")
        return tuple(sorted(frozenset(values)))

    def _listed(self) -> str:
        return "" if self._peek() in (",", ")") else self._word("a value")

    def _word(self, what: str) -> str:
        if self._peek() in _SYMBOLS or self._peek() == "":
            self._fail(f"{what} is expected", self._place())
        return self._take()

    def _expect(self, symbol: str) -> None:
        if self._peek() != symbol:
            self._fail(f"{symbol!r} is expected", self._place())
        self._take()

    def _peek(self) -> str:
        return self._tokens[self._next][0]

    def _place(self) -> int:
        return self._tokens[self._next][1]

    def _take(self) -> str:
        token = self._tokens[self._next][0]
        self._next += 1
        return token

    def _fail(self, problem: str, at: int) -> NoReturn:
        raise UsageError(f"The label selector {self._text!r} is wrong at character {at + 1}: {problem}.")


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Words and symbols with their positions, then one empty token at the end."""
    at = 0
    while (found := _TOKEN.match(text, at)) and found[1]:
        yield found[1], found.start(1)
        at = found.end()
    yield "", len(text)
