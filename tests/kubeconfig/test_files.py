from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.kubeconfig.files import KubeconfigEntry, parse, read

CANARY = "c4nary-in-the-mine"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2026-01-01", "2026-01-01"),  # no dates
        ("a: 12:30", "12:30"),  # no base 60
        ("a: 0123", "0123"),
        ("a: 1_000", "1_000"),
        ("a: 1e3", "1e3"),
        ("a: 12", 12),
        ("a: -1.5", -1.5),
        ("a: 1.5e+3", 1500.0),
        ("a: yes", True),
        ("a: ~", None),
        ("a:", None),
        ("a: =", "="),
        ('{"a":\t"\\/ \\ud83d\\ude00"}', "/ 😀"),  # JSON, whose escapes YAML does not all know
        ("\ufeffa: b", "b"),
        ("b: &x {c: d}\na: *x", {"c": "d"}),
    ],
)
def test_values_are_what_kubectl_reads(text: str, value: Any) -> None:
    assert parse(text.encode(), "The file")["a"] == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"a: [b", "The file is not valid YAML at line 2, column 1: did not find expected"),
        (b"a:\n\tb: c", "The file is not valid YAML at line 2, column 1: found character"),
        (b"a: b: c", "The file is not valid YAML at line 1, column 5: mapping values are not allowed in this context."),
        (b"a: \xff", "The file is not UTF-8 text."),
        (b"a: \x00", "The file is not valid YAML"),
        (b"a: *nobody", "The file is not valid YAML at line 1, column 4: found undefined alias."),
        (b"a: !!python/object:os.system x", "could not determine a constructor for the tag."),
        (b"[" * 3000, "The file"),
        (b"? [a]\n: b", "The file is not valid YAML at line 1, column 3: found unhashable key."),
    ],
)
def test_errors_say_where(text: bytes, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "The file")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "around", ["token: *{}", "token: !{} x", "token: '{}", 'token: "{}\\q"', "{}: [", "\t{}", "@{}"]
)
def test_errors_never_quote_the_file(around: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"a: b\n{around.format(CANARY)}\nb: [".encode(), "The file")
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- a", "contains a list instead of a mapping"),
        ("hello", "contains text instead of a mapping"),
        ("kind: Pod", "it has apiVersion 'v1', kind 'Pod'"),
        ("{apiVersion: v2, kind: Config}", "it has apiVersion 'v2', kind 'Config'"),
        ("contexts: {a: b}", "'contexts' of kubeconfig"),
        ("contexts: [a]", "must be a list of mappings"),
        ("contexts: [{name: a, context: b}]", "'context' of context 'a' in"),
        ("contexts: [{name: 1}]", "'name' of kubeconfig"),
        ("users: [{name: a}, {name: a}]", "has two users named 'a'"),
        ("current-context: [a]", "'current-context' of kubeconfig"),
    ],
)
def test_files_that_are_no_kubeconfig(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(str(tmp_path / "config"), {}, tmp_path)
    assert sentence in str(caught.value)
    assert str(tmp_path / "config") in str(caught.value)


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "null", "contexts:\nclusters: null\ncurrent-context:"])
def test_empty_files_are_empty_kubeconfigs(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    found = read(str(tmp_path / "config"), {}, tmp_path)
    assert (found.current_context, found.contexts, found.read) == ("", {}, (tmp_path / "config",))


def test_an_entry_without_content_is_an_empty_entry(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("users: [{name: a}, {name: b, user: null}]")
    found = read(str(tmp_path / "config"), {}, tmp_path)
    assert {name: dict(entry.fields) for name, entry in found.users.items()} == {"a": {}, "b": {}}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not exist\.$"):
        read(str(tmp_path / "gone"), {}, tmp_path)
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory\.$"):
        read("", {"KUBECONFIG": str(tmp_path)}, tmp_path)
    (tmp_path / "broken").write_text("[")
    with pytest.raises(ConfigError, match="not valid YAML"):
        read("", {"KUBECONFIG": f"{tmp_path}/gone:{tmp_path}/broken"}, tmp_path)


def test_data_may_be_wrapped() -> None:
    entry = KubeconfigEntry(kind="user", name="u", fields={"d": "aGVs\n bG8=\n"})
    assert (entry.data("d"), entry.data("absent")) == (b"hello", b"")


def test_an_entry_shows_none_of_its_fields() -> None:
    assert CANARY not in repr(KubeconfigEntry(kind="user", name="u", fields={"token": CANARY}))
