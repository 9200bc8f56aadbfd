"""Errors in JSON, in the words of Go's decoder, which differ from Python's."""

from __future__ import annotations

import json
import re

_DEEPEST = 10_000
_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_END = "unexpected end of JSON input"


class _Wrong(Exception):
    pass


def error_in(text: str) -> str:
    """The error that Go reports; empty if the text is valid JSON. Each character is a byte: Go reads no further."""
    try:
        _check(text)
    except _Wrong as error:
        return str(error)
    return ""


def _check(text: str) -> None:
    at, closing = 0, list[str]()
    while True:
        at, opened = _value(text, _skip(text, at))
        closing += opened
        if len(closing) > _DEEPEST:
            raise _unexpected(text, at - 1, "exceeded max depth")
        if opened:
            at = _skip(text, at)
            if text[at : at + 1] != closing[-1]:
                at = _key(text, at) if closing[-1] == "}" else at
                continue
        at = _after(text, at, closing)
        if not closing:
            if (at := _skip(text, at)) < len(text):
                raise _unexpected(text, at, "after top-level value")
            return


def _after(text: str, at: int, closing: list[str]) -> int:
    """The start of the next value; closes the objects and lists that end here."""
    while closing:
        at = _skip(text, at)
        if text[at : at + 1] == closing[-1]:
            closing.pop()
            at += 1
        elif text[at : at + 1] == ",":
            return _key(text, _skip(text, at + 1)) if closing[-1] == "}" else at + 1
        else:
            raise _unexpected(text, at, "after object key:value pair" if closing[-1] == "}" else "after array element")
    return at


def _key(text: str, at: int) -> int:
    if text[at : at + 1] != '"':
        raise _unexpected(text, at, "looking for beginning of object key string")
    at = _skip(text, _string(text, at))
    if text[at : at + 1] != ":":
        raise _unexpected(text, at, "after object key")
    return at + 1


def _value(text: str, at: int) -> tuple[int, list[str]]:
    """The end of a simple value, or the start of the content of an object or list, and its closing character."""
    first = text[at : at + 1]
    if first in ("{", "["):
        return at + 1, ["}" if first == "{" else "]"]
    if first == '"':
        return _string(text, at), []
    for word in ("true", "false", "null"):
        if first == word[0]:
            return _word(text, at, word), []
    if first and first in "-0123456789":
        return _number(text, at), []
    raise _unexpected(text, at, "looking for beginning of value")


def _string(text: str, at: int) -> int:
    found = _STRING.match(text, at + 1)
    assert found is not None
    end = found.end()
    if text[end : end + 1] == '"':
        return end + 1
    if text[end : end + 1] != "\\":
        raise _unexpected(text, end, "in string literal")
    if text[end + 1 : end + 2] != "u":
        raise _unexpected(text, end + 1, "in string escape code")
    digits = re.compile("[0-9a-fA-F]*").match(text, end + 2)
    assert digits is not None
    raise _unexpected(text, digits.end(), "in \\u hexadecimal character escape")


def _number(text: str, at: int) -> int:
    found = _NUMBER.match(text, at)
    if found is None:
        raise _unexpected(text, at + 1, "in numeric literal")
    end = found.end()
    if text[end : end + 1] == "." and "." not in found[0] and "e" not in found[0].lower():
        raise _unexpected(text, end + 1, "after decimal point in numeric literal")
    if text[end : end + 1] in ("e", "E") and "e" not in found[0].lower():
        sign = text[end + 1 : end + 2] in ("+", "-")
        raise _unexpected(text, end + 1 + sign, "in exponent of numeric literal")
    return end


def _word(text: str, at: int, word: str) -> int:
    for place, letter in enumerate(word):
        if text[at + place : at + place + 1] != letter:
            raise _unexpected(text, at + place, f"in literal {word} (expecting {_quoted(letter)})")
    return at + len(word)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _unexpected(text: str, at: int, where: str) -> _Wrong:
    return _Wrong(f"invalid character {_quoted(text[at])} {where}" if at < len(text) else _END)


def _quoted(letter: str) -> str:
    if letter in "'\"":
        return "'\\''" if letter == "'" else "'\"'"
    if letter.isprintable() or letter in "\n\r\t\b\f":
        return f"'{json.dumps(letter, ensure_ascii=False)[1:-1]}'"
    return f"'\\x{ord(letter):02x}'" if letter < "\x80" else f"'\\u{ord(letter):04x}'"
