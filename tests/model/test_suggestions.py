from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from kubectl_ctrl.model.suggestions import Command, command, ctrl


@pytest.mark.parametrize("word", ["web", "my lab", "$(touch pwned)", "a;b", "it's", "", "~", "*", "a\nb"])
def test_a_word_stays_one_word(word: str) -> None:
    assert shlex.split(str(command("echo", word))) == ["echo", word]


def test_what_needs_no_quotes_has_none_and_parts_are_put_together() -> None:
    flag = command("--context", "my lab")
    assert str(ctrl("stop", "foo", flag, Path("/a/b"))) == "kubectl ctrl stop foo --context 'my lab' /a/b"
    assert flag == Command(("--context", "my lab"))
