from __future__ import annotations

import base64
from typing import Any

import pytest

from kubectl_ctrl.client.words import excerpt, plain, redacted, sentence


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("  two\n lines\t here ", "two lines here"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b1m", r"\x9b1m"),
        ("a\x00b\x7f", r"a\x00b\x7f"),
        ("\u202egnp", r"\u202egnp"),
        ("\u200bzero", r"\u200bzero"),
        ("\U000e0001tag", r"\U000e0001tag"),
        ("\ud800", r"\ud800"),
        ("grün 日本 🙂", "grün 日本 🙂"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_plain_is_bounded_and_says_so() -> None:
    assert plain("x" * 50, 20) == "x" * 17 + "..."
    assert plain("x" * 20, 20) == "x" * 20
    assert len(plain("\x00" * 10_000_000, 20)) == 20


def test_excerpt_of_anything() -> None:
    assert excerpt(b"") == "nothing"
    assert excerpt(b"<html>\xff\x1b") == "'<html>\ufffd\\\\x1b'"
    assert len(excerpt(b"y" * 1_000_000)) < 130


@pytest.mark.parametrize(
    "body",
    [
        {"data": {"p": base64.b64encode(b"hunter2").decode()}},
        {"stringData": {"p": "hunter2"}},
        {"spec": {"token": ["hunter2"]}},
        [{"op": "add", "path": "/data/p", "value": "hunter2"}],
    ],
)
def test_redacted_hides_what_was_sent_in_every_form(body: Any) -> None:
    encoded = base64.b64encode(b"hunter2").decode()
    assert redacted(f"bad value hunter2 or {encoded} for x", body) == "bad value (hidden) or (hidden) for x"


def test_redacted_takes_text_that_base64_cannot_hold() -> None:
    body = {"kind": "Secret", "stringData": {"password": "pässwort"}}
    assert redacted('secrets "x" already exists: pässwort', body) == 'secrets "x" already exists: (hidden)'


def test_redacted_leaves_names_and_short_texts() -> None:
    body = {"kind": "Secret", "metadata": {"name": "mysecret"}, "data": {"p": "abc"}, "type": "Opaque"}
    message = 'Secret "mysecret" of type Opaque is invalid: abc'
    assert redacted(message, body) == message
    assert redacted(message, None) == message


def test_sentence_ends_once() -> None:
    assert sentence("a") == "a."
    assert sentence("a.") == "a."
    assert sentence("a?") == "a?"
