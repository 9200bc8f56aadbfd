"""Regular expressions as Go's regexp package understands them."""

from __future__ import annotations

import re
import time
from random import Random

import pytest

from kubectl_ctrl.sandbox.crds import patterns


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^[a-z]*$", "abc", "aB"),
        (r"^[^a-c]$", "d", "b"),
        (r"^[]a]+$", "]a", "b"),
        (r"^\d{2,3}$", "123", "1234"),
        (r"^a{2}{$", "aa{", "aa"),
        (r"\bfoo\b", "a foo b", "afoo"),
        (r"(?i)ABC", "xabcx", "ab"),
        (r"(?i:a)b", "Ab", "AB"),
        (r"^.$", "a", "\n"),
        (r"(?s)^.$", "\n", "ab"),
        (r"(?m)^b$", "a\nb", "a b"),
        (r"\Aa\z", "a", "a\n"),
        (r"^\p{Lu}\pL+$", "Éa", "éa"),
        (r"^\p{Greek}$", "\u03b1", "a"),
        (r"^\\Q$", "\\Q", "Q"),
        (r"^[[:alpha:]][[:^digit:]]$", "ab", "a1"),
        (r"^\x41\x{263a}\.$", "A☺.", "A☺x"),
        (r"^\Qa.b\E+$", "a.bb", "axb"),
        (r"^(?P<n>a|b|)c$", "c", "xc"),
        (r"^(a|b)*?c+?$", "abc", "abd"),
        (r"^[\w.-]+@x$", "a.b-c@x", "a b@x"),
    ],
)
def test_expressions(pattern: str, matching: str, other: str) -> None:
    assert patterns.found(pattern, matching)
    assert not patterns.found(pattern, other)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("[a", "missing closing ]: `[a`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)b", "invalid or unsupported Perl syntax: `(?<`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("(((a{1000}){1000}){1000})", "expression too large: ``"),
    ],
)
def test_invalid_expressions(pattern: str, message: str) -> None:
    with pytest.raises(patterns.BadPattern) as caught:
        patterns.compiled(pattern)
    assert str(caught.value) == f"error parsing regexp: {message}"
    assert not patterns.found(pattern, "a")


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"^(a|a)*$", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"a*a*a*a*a*b"])
def test_a_pathological_expression_takes_linear_time(pattern: str) -> None:
    began = time.process_time()
    assert not patterns.found(pattern, "a" * 20_000 + "!")
    assert time.process_time() - began < 2  # Python's own module would need longer than the universe has existed


def test_expressions_agree_with_python_where_both_have_them() -> None:
    random = Random(7)
    parts = ["a", "b", "[ab]", "[^a]", ".", "a*", "b+", "a?", "(a|b)", "(ab)*", "^", "$", r"\b", "a{2}", "(?:a*b)+"]
    for _ in range(2000):
        pattern = "".join(random.choices(parts, k=random.randint(1, 5)))
        text = "".join(random.choices("ab \n", k=random.randint(0, 6)))
        expected = re.search(pattern.replace("$", r"\Z"), text) is not None
        assert patterns.found(pattern, text) == expected, (pattern, text)
