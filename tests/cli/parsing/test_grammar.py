from __future__ import annotations

import click
import pytest

from kubectl_ctrl.cli.parsing.grammar import SIZE, Flag, before_verb, split
from kubectl_ctrl.errors import UsageError

FLAGS = (
    Flag("-o", "--output", value="FORMAT", default=""),
    Flag("-n", "--namespace", value="NAME", default=""),
    Flag("-A", "--all-namespaces"),
    Flag("-w", "--watch"),
    Flag("-v", "--v", "verbosity", value="LEVEL", type=int, default=0),
    Flag("--leader-elect", value="WHEN", bare="true", default="auto"),
    Flag("--as-group", value="GROUP", multiple=True),
)


@pytest.mark.parametrize(
    ("words", "flags", "arguments"),
    [
        (["-o", "json"], ["--output=json"], []),
        (["-o=json"], ["--output=json"], []),
        (["-ojson"], ["--output=json"], []),
        (["--output", "json"], ["--output=json"], []),
        (["--output=json"], ["--output=json"], []),
        (["--output="], ["--output="], []),
        (["-v=6"], ["--v=6"], []),
        (["-v6"], ["--v=6"], []),
        (["--watch"], ["--watch=true"], []),
        (["--watch", "false"], ["--watch=true"], ["false"]),
        (["--watch=false"], ["--watch=false"], []),
        (["-w=false"], ["--watch=false"], []),
        (["-wA"], ["--watch=true", "--all-namespaces=true"], []),
        (["-wojson"], ["--watch=true", "--output=json"], []),
        (["-wo", "json"], ["--watch=true", "--output=json"], []),
        (["--leader-elect", "foo"], ["--leader-elect=true"], ["foo"]),
        (["--leader-elect=required"], ["--leader-elect=required"], []),
        (["foo", "-A", "bar"], ["--all-namespaces=true"], ["foo", "bar"]),
        (["--", "-A", "--output"], [], ["-A", "--output"]),
        (["-"], [], ["-"]),
        (["-n", "--watch"], ["--namespace=--watch"], []),
        (["--as-group", "a", "--as-group=b"], ["--as-group=a", "--as-group=b"], []),
    ],
)
def test_words_are_split_as_pflag_splits_them(words: list[str], flags: list[str], arguments: list[str]) -> None:
    got = split(words, FLAGS)
    assert (list(got.flags), list(got.arguments)) == (flags, arguments)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--nope"], "Unknown flag: '--nope'."),
        (["-x"], "Unknown shorthand flag: 'x' in '-x'."),
        (["-wx"], "Unknown shorthand flag: 'x' in '-wx'."),
        (["-o"], "Flag needs an argument: '-o'."),
        (["--output"], "Flag needs an argument: '--output'."),
        (["---watch"], "Bad flag syntax: '---watch'."),
        (["--=x"], "Bad flag syntax: '--=x'."),
    ],
)
def test_what_pflag_refuses_is_refused(words: list[str], text: str) -> None:
    with pytest.raises(UsageError) as caught:
        split(words, FLAGS)
    assert caught.value.message == text


def test_an_unknown_flag_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        split(["--ouptut=json"], FLAGS)
    assert caught.value.next_step == "did you mean --output?"


@pytest.mark.parametrize(
    ("words", "verb", "rest"),
    [
        (["run", "foo"], "run", ["foo"]),
        (["--namespace", "run", "list"], "list", ["--namespace", "run"]),
        (["-n=x", "run", "foo", "-A"], "run", ["-n=x", "foo", "-A"]),
        (["-A", "run", "foo"], "run", ["-A", "foo"]),
        (["--once", "run", "foo"], "run", ["--once", "foo"]),  # a flag of the verb alone, before it
        (["--workers", "3", "run", "foo"], "run", ["--workers", "3", "foo"]),
        (["rnu", "foo"], "rnu", ["foo"]),
        ([], "", []),
        (["--help"], "", ["--help"]),
        (["--watch=true", "run"], "run", ["--watch=true"]),
    ],
)
def test_flags_before_the_verb_move_behind_it(words: list[str], verb: str, rest: list[str]) -> None:
    assert before_verb(words, FLAGS, ("run", "list")) == (verb, rest)


@pytest.mark.parametrize(
    ("text", "size"),
    [("5", 5), ("200MB", 200_000_000), ("1Gi", 1024**3), ("1.5k", 1500), ("2TiB", 2 * 1024**4), ("0", 0)],
)
def test_sizes_are_written_as_quantities(text: str, size: int) -> None:
    assert SIZE.convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "MB", "-1", "1e3", "200 MB", "1Zi", "1i"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size"):
        SIZE.convert(text, None, None)
