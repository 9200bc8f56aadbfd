"""The problems and formats that many kinds share, in the server's words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.selectors import from_label_selector
from kubectl_ctrl.sandbox.answers import Problem

Found = Iterator[Problem]
Format = Callable[[str], list[str]]  # the reasons against a text


def shown(value: Any) -> str:
    return json.dumps(_sorted(value), separators=(",", ":"), ensure_ascii=False)


def _sorted(value: Any) -> Any:
    """With maps of texts in the order of their keys, as Go writes them; structs keep theirs."""
    if not isinstance(value, dict):
        return value
    is_map = all(isinstance(item, str) for item in value.values())
    return {key: _sorted(item) for key, item in (sorted(value.items()) if is_map else value.items())}


def invalid(field: str, value: Any, words: str) -> Problem:
    tail = f": {words}" if words else ""
    return Problem(field=field, reason="FieldValueInvalid", message=f"Invalid value: {shown(value)}{tail}")


def required(field: str, words: str = "") -> Problem:
    tail = f": {words}" if words else ""
    return Problem(field=field, reason="FieldValueRequired", message=f"Required value{tail}")


def forbidden(field: str, words: str) -> Problem:
    return Problem(field=field, reason="FieldValueForbidden", message=f"Forbidden: {words}")


def duplicate(field: str, value: Any) -> Problem:
    return Problem(field=field, reason="FieldValueDuplicate", message=f"Duplicate value: {shown(value)}")


def not_found(field: str, value: Any) -> Problem:
    return Problem(field=field, reason="FieldValueNotFound", message=f"Not found: {shown(value)}")


def unsupported(field: str, value: Any, *valid: str) -> Problem:
    supported = ", ".join(f'"{one}"' for one in valid)
    message = f"Unsupported value: {shown(value)}: supported values: {supported}"
    return Problem(field=field, reason="FieldValueNotSupported", message=message)


def too_long(field: str, most: int) -> Problem:
    return Problem(field=field, reason="FieldValueTooLong", message=f"Too long: may not be more than {most} bytes")


# -- formats


def _pattern(words: str, regex: str, *examples: str) -> tuple[re.Pattern[str], str]:
    shown_examples = " or ".join(f"'{one}', " for one in examples)
    return re.compile(regex), f"{words} (e.g. {shown_examples}regex used for validation is '{regex}')"


_LABEL_TEXT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DOMAIN_TEXT = rf"{_LABEL_TEXT}(\.{_LABEL_TEXT})*"
_ENDS = "and must start and end with an alphanumeric character"
_LABEL, _LABEL_WORDS = _pattern(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    _LABEL_TEXT,
    "my-name",
    "123-abc",
)
_DOMAIN, _DOMAIN_WORDS = _pattern(
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}",
    _DOMAIN_TEXT,
    "example.com",
)
_WILD, _WILD_WORDS = _pattern(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    rf"\*\.{_DOMAIN_TEXT}",
    "*.example.com",
)
_NAME, _NAME_WORDS = _pattern(
    f"name part must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    "MyName",
    "my.name",
    "123-abc",
)
_VALUE, _VALUE_WORDS = _pattern(
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS}",
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY, _CONFIG_WORDS = _pattern(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "[-._a-zA-Z0-9]+",
    "key.name",
    "KEY_NAME",
    "key-name",
)
_PERCENT, _PERCENT_WORDS = _pattern(
    "a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", "1%", "93%"
)


def _longer(text: str, most: int) -> list[str]:
    return [f"must be no more than {most} characters"] if len(text) > most else []


def label(text: str) -> list[str]:
    if _LABEL.fullmatch(text):
        return _longer(text, 63)
    return [*_longer(text, 63), "must not contain dots" if _DOMAIN.fullmatch(text) else _LABEL_WORDS]


def subdomain(text: str) -> list[str]:
    return [*_longer(text, 253), *([] if _DOMAIN.fullmatch(text) else [_DOMAIN_WORDS])]


def wildcard(text: str) -> list[str]:
    return [*_longer(text, 253), *([] if _WILD.fullmatch(text) else [_WILD_WORDS])]


def path_segment(text: str) -> list[str]:
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{mark}'" for mark in "/%" if mark in text]


def qualified(text: str) -> list[str]:
    """The key of a label: a name, perhaps after a domain."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        rule = _NAME_WORDS.removeprefix("name part ")
        return [f"a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    found = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += [f"prefix part {words}" for words in subdomain(prefix)]
    if not name:
        found.append("name part must be non-empty")
    if len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    return found if _NAME.fullmatch(name) else [*found, _NAME_WORDS]


def label_value(text: str) -> list[str]:
    found = ["must be no more than 63 bytes"] if len(text) > 63 else []
    return found if _VALUE.fullmatch(text) else [*found, _VALUE_WORDS]


def config_key(text: str) -> list[str]:
    found = [*_longer(text, 253), *([] if _CONFIG_KEY.fullmatch(text) else [_CONFIG_WORDS])]
    if text in (".", ".."):
        return [*found, f"must not be '{text}'"]
    return [*found, "must not start with '..'"] if text.startswith("..") else found


def port_name(text: str) -> list[str]:
    rules = (
        (len(text) > 15, "must be no more than 15 characters"),
        (
            not re.fullmatch("[-a-z0-9]+", text),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (not re.search("[a-z]", text), "must contain at least one letter (a-z)"),
        ("--" in text, "must not contain consecutive hyphens"),
        (text[:1] == "-" or text[-1:] == "-", "must not begin or end with a hyphen"),
    )
    return [words for broken, words in rules if broken]


def texts(field: str, value: Any, form: Format) -> Found:
    for words in form(str(value)):
        yield invalid(field, value, words)


# -- numbers


def in_range(field: str, value: int, least: int, most: int) -> Found:
    if not least <= value <= most:
        yield invalid(field, value, f"must be between {least} and {most}, inclusive")


def port(field: str, value: Any) -> Found:
    """The number or the name of a port."""
    yield from in_range(field, value, 1, 65535) if isinstance(value, int) else texts(field, value, port_name)


def not_negative(path: str, struct: Obj, *names: str) -> Found:
    for name in names:
        number = struct.get(name)
        if isinstance(number, int) and number < 0:
            yield invalid(f"{path}.{name}", struct[name], "must be greater than or equal to 0")


def share(field: str, value: Any) -> Found:
    """A number or a percentage."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            yield invalid(field, value, _PERCENT_WORDS)
    elif value is not None and value < 0:
        yield invalid(field, value, "must be greater than or equal to 0")


def at_most_all(field: str, value: Any) -> Found:
    if share_of(value) > 100 and isinstance(value, str):
        yield invalid(field, value, "must not be greater than 100%")


def share_of(value: Any) -> int:
    text = str(value or 0).removesuffix("%")
    return int(text) if text.lstrip("-").isdecimal() else 0


# -- labels and selectors


def labels(field: str, given: Mapping[str, Any] | None) -> Found:
    for key, value in (given or {}).items():
        yield from texts(field, key, qualified)
        yield from texts(field, value, label_value)


def annotation_texts(field: str, given: Mapping[str, Any] | None) -> Found:
    for key in given or ():
        for words in qualified(key.lower()):
            yield invalid(field, key, words)
    if sum(len(key.encode()) + len(str(value).encode()) for key, value in (given or {}).items()) > 256 << 10:
        yield too_long(field, 256 << 10)


def selector(field: str, given: Obj | None) -> Found:
    yield from labels(f"{field}.matchLabels", (given or {}).get("matchLabels"))
    for place, one in enumerate((given or {}).get("matchExpressions") or ()):
        yield from _expression(f"{field}.matchExpressions[{place}]", one)


def _expression(field: str, one: Obj) -> Found:
    operator, values = one.get("operator"), one.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(f"{field}.operator", operator or "", "not a valid selector operator")
    yield from texts(f"{field}.key", one.get("key") or "", qualified)
    for place, value in enumerate(values):
        yield from texts(f"{field}.values[{place}]", value, label_value)


def selects(given: Obj | None, found: Mapping[str, Any] | None) -> bool | None:
    """Whether the selector fits the labels; nothing if it is broken. A missing selector fits no labels."""
    if given is None:
        return False
    try:
        return from_label_selector(given or None).matches({**(found or {})})
    except UsageError:
        return None


def unlike(field: str, new: Any, old: Any, words: str = "field is immutable") -> Found:
    if not same(new, old):
        yield invalid(field, new, words)


def one_of(field: str, value: Any, *valid: str) -> Found:
    if not value:
        yield required(field)
    elif value not in valid:
        yield unsupported(field, value, *valid)
