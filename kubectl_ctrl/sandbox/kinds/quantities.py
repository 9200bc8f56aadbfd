"""Quantities such as `500m` and `1Gi`: their values, and the one form in which the server returns each."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Any

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_LETTERS = {power: letter for letter, power in _DECIMAL.items()}
_UNITS = {power: unit for unit, power in _BINARY.items()}
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))"
    r"(?:(?P<binary>[KMGTPE]i)|[eE](?P<exponent>[+-]?\d{1,18})|(?P<decimal>[numkMGTPE]?))",
    re.ASCII,
)
_LARGEST = Decimal(2**63 - 1)
_MOST_POWER = 100  # more is surely too large or too small


@lru_cache(4096)
def parse(text: str) -> tuple[Decimal, str] | None:
    """The value, and `binary`, `exponent` or `decimal`; nothing if it is not a quantity."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number = Decimal(match["number"])
    if match["binary"]:
        return _capped(number * 1024 ** _BINARY[match["binary"]]), "binary"
    if match["exponent"]:
        power = max(-_MOST_POWER, min(_MOST_POWER, int(match["exponent"])))
        return _capped(number.scaleb(power)), "exponent"
    return _capped(number.scaleb(_DECIMAL[match["decimal"]])), "decimal"


def _capped(value: Decimal) -> Decimal:
    return max(-_LARGEST, min(_LARGEST, value))


def amount(given: Any) -> Decimal:
    """The value of a quantity; zero for what is not one."""
    parsed = parse(str(given))
    return parsed[0] if parsed else Decimal(0)


@lru_cache(4096)
def canonical(text: str, smallest: int = -9) -> str:
    """The server's form: `1000m` is `1`, `1024Mi` is `1Gi`. Digits below ten to the power of `smallest` round up."""
    parsed = parse(text.strip())
    if parsed is None:
        return text
    value, form = parsed
    step = Decimal(1).scaleb(smallest)
    value = (value / step).to_integral_value(ROUND_CEILING if value > 0 else "ROUND_FLOOR") * step
    if form == "binary" and abs(value) >= 1024:
        return _binary(int(value.to_integral_value(ROUND_CEILING)))
    return _decimal(value, exponent=form == "exponent")


def _binary(value: int) -> str:
    power = 0
    while value and value % 1024 == 0 and power < len(_BINARY):
        value, power = value // 1024, power + 1
    return f"{value}{_UNITS[power]}" if power else str(value)


def _decimal(value: Decimal, *, exponent: bool) -> str:
    if value == 0:
        return "0"
    power = 18
    while value.scaleb(-power) != value.scaleb(-power).to_integral_value():
        power -= 3
    number = int(value.scaleb(-power))
    if exponent:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_LETTERS[power]}"
