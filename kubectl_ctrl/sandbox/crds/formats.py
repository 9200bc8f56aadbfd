"""The formats of strings and numbers in CRD schemas; all others are ignored, as by the API server."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import math
import re
import struct
from collections.abc import Callable
from datetime import date
from typing import Any
from urllib.parse import urlsplit

_UUID = r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})")
_GO_DURATION = re.compile(r"[+-]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")
_DURATION = re.compile(r"[0-9]+\s*([A-Za-zµ]+)")
_UNITS = re.compile(
    r"ns|nano.*|us|µs|micro.*|ms|milli.*|s|sec.*|m|min.*|h|hr|hour.*|d|day.*|w|wk|week.*", re.IGNORECASE
)
_CARD = re.compile(
    r"4\d{12}(\d{3})?|5[1-5]\d{14}|6(011|5\d\d)\d{12}|3[47]\d{13}|3(0[0-5]|[68]\d)\d{11}|(2131|1800|35\d{3})\d{11}",
    re.ASCII,
)
_EMAIL = re.compile(r"(?:[^<>@\"]*<)?[^\s<>@\",;:\\()\[\]]+@[^\s<>@\",;:\\()]+>?")
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def _full(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        date.fromisoformat("0004" + text[4:] if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    day, separator, rest = text.lower().partition("t")
    found = _TIME.fullmatch(rest)
    if not separator or found is None or not _is_date(day):
        return False
    return found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_duration(text: str) -> bool:
    return bool(_GO_DURATION.fullmatch(text)) or any(_UNITS.fullmatch(unit) for unit in _DURATION.findall(text))


def _parsed(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return fits


def _base64(text: str) -> None:
    if not base64.b64decode(text, validate=True):
        raise ValueError(text)


def _without_zeros(text: str) -> str:
    """Leading zeros of an IPv4 address are decimal, as in old versions of Go."""
    return re.sub(r"(?<![0-9a-fA-F:])0+(?=[0-9])", "", text)


def _ipv4(text: str) -> None:
    ipaddress.ip_address(_without_zeros(text))
    if "." not in text:
        raise ValueError(text)


def _ipv6(text: str) -> None:
    if "%" in text:
        raise ValueError(text)
    ipaddress.IPv6Address(text)


def _cidr(text: str) -> None:
    address, _, bits = text.partition("/")
    if not bits.isdecimal() or "%" in text:
        raise ValueError(text)
    ipaddress.ip_network(f"{_without_zeros(address)}/{bits}", strict=False)


def _uri(text: str) -> None:
    parts = urlsplit(text)
    if not (parts.scheme or text.startswith("/")) or any(char in text for char in " \t\n\x7f"):
        raise ValueError(text)
    if re.search(r"%(?![0-9a-fA-F]{2})", text) or not re.match(r"/|[A-Za-z][A-Za-z0-9+.-]*:", text):
        raise ValueError(text)
    _ = parts.port


def _is_hostname(text: str) -> bool:
    parts = text.split(".")
    label = re.compile(r"[^\W_]([\w-]*[^\W_])?", re.UNICODE)
    return (
        len(text) <= 255
        and all(len(part) <= 63 and "_" not in part and label.fullmatch(part) for part in parts)
        and (len(parts) == 1 or (len(parts[-1]) >= 2 and parts[-1].isalpha()))
    )


def _is_isbn(text: str, size: int) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if size == 10:
        if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
            return False
        return sum((10 if digit == "X" else int(digit)) * (10 - at) for at, digit in enumerate(digits)) % 11 == 0
    return bool(re.fullmatch(r"[0-9]{13}", digits)) and (
        sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(digits)) % 10 == 0
    )


def _is_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = (int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits)))
    return sum(number // 10 + number % 10 for number in doubled) % 10 == 0


_STRINGS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _full(r"[0-9a-fA-F]{24}"),
    "byte": _parsed(_base64),
    "cidr": _parsed(_cidr),
    "creditcard": _is_card,
    "date": _is_date,
    "datetime": _is_time,
    "duration": _is_duration,
    "email": lambda text: _EMAIL.fullmatch(text.strip()) is not None and text.count("<") == text.count(">"),
    "hexcolor": _full(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": _parsed(_ipv4),
    "ipv6": _parsed(_ipv6),
    "isbn": lambda text: _is_isbn(text, 10) or _is_isbn(text, 13),
    "isbn10": lambda text: _is_isbn(text, 10),
    "isbn13": lambda text: _is_isbn(text, 13),
    "k8slongname": lambda text: len(text) <= 253 and _full(rf"{_LABEL}(\.{_LABEL})*")(text),
    "k8sshortname": lambda text: len(text) <= 63 and _full(_LABEL)(text),
    "mac": _full(r"(?i)([0-9a-f]{2}([:-][0-9a-f]{2}){5}([:-][0-9a-f]{2}){0,2})|([0-9a-f]{4}(\.[0-9a-f]{4}){2,3})"),
    "password": lambda _: True,
    "rgbcolor": _full(
        r"rgb\(\s*{0}\s*,\s*{0}\s*,\s*{0}\s*\)".replace("{0}", "(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])")
    ),
    "ssn": _full(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": _parsed(_uri),
    "uuid": _full(_UUID % ("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _full(_UUID % ("3", "[0-9a-f]")),
    "uuid4": _full(_UUID % ("4", "[89ab]")),
    "uuid5": _full(_UUID % ("5", "[89ab]")),
}
_LIMITS = {"int32": 2**31, "int64": 2**63}


def _normal(name: str) -> str:
    return name.replace("-", "")


def is_string(name: str) -> bool:
    return _normal(name) in _STRINGS


def fits(name: str, text: str) -> bool:
    """Whether a string has this format; true for unknown formats."""
    test = _STRINGS.get(_normal(name))
    return test is None or test(text)


def in_range(name: str, kind: str, number: float) -> bool:
    """Whether a number is in the range of its type and format."""
    if kind == "integer":
        limit = _LIMITS.get(name, 2**63)
        return float(number).is_integer() and -limit <= number < limit
    return name != "float" or (math.isfinite(number) and abs(number) <= struct.unpack("f", b"\xff\xff\x7f\x7f")[0])


def unknown(schema: Any) -> bool:
    """Whether the schema has a format that is ignored."""
    name, kind = schema.get("format", ""), schema.get("type", "")
    known = {"integer": ("int32", "int64"), "number": ("float", "double")}
    if not name:
        return False
    return not is_string(name) if kind in ("", "string") else name not in known.get(kind, ())
