"""Server messages made safe to print: one short line without control characters and secrets that were sent."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_MESSAGE = 1500
_EXCERPT = 120

# The decoders of old API servers quote the input around an error.
_QUOTED_INPUT = re.compile(r"error found in #\d+ byte of .*", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n\f\v]+")
_SHORTEST_SECRET = 4
_SHOWN = frozenset({"apiVersion", "kind", "metadata", "type"})


def plain(text: str, limit: int = _MESSAGE) -> str:
    """`text` as one line of at most `limit` characters; unprintable ones are escaped."""
    line = _SPACE.sub(" ", text[: 4 * limit]).strip()
    if not line.isprintable():
        line = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)
    return line if len(line) <= limit and len(text) <= 4 * limit else line[: limit - 3] + "..."


def excerpt(body: bytes) -> str:
    """The first bytes of an unreadable response, quoted."""
    return repr(plain(body[: 4 * _EXCERPT].decode("utf-8", "replace"), _EXCERPT)) if body else "nothing"


def redacted(message: str, body: Any) -> str:
    """`message` without values of the body that was sent."""
    message = _QUOTED_INPUT.sub("(the input is not shown)", message)
    parts = body.items() if isinstance(body, dict) else enumerate(body or [])
    texts = [text for key, part in parts if key not in _SHOWN for text in _texts(part)]
    for text in sorted(texts, key=len, reverse=True):  # longer values first, because they may contain shorter ones
        message = message.replace(text, "(hidden)")
    return message


def sentence(text: str) -> str:
    """`text` with a full stop at its end."""
    return text if text.endswith((".", "!", "?")) else text + "."


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str) and len(value) >= _SHORTEST_SECRET:
        yield value
        yield base64.b64encode(value.encode("utf-8", "replace")).decode()
        with suppress(ValueError):
            decoded = base64.b64decode(value, validate=True).decode()
            if len(decoded) >= _SHORTEST_SECRET:
                yield decoded
