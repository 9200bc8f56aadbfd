"""Help that can be relied on: one line, examples that parse, and flags that say what they take."""

from __future__ import annotations

import re
import shlex

import pytest

from kubectl_ctrl.cli.parsing.flags import COMMON_FLAGS, GLOBAL_FLAGS
from kubectl_ctrl.cli.parsing.grammar import before_verb
from kubectl_ctrl.cli.parsing.verb import Verb, typed
from kubectl_ctrl.cli.verbs import table

VERBS = [table.load(entry) for entry in table.VERBS]


def calls(line: str) -> list[list[str]]:
    """The words of each call of ours in a line for a shell: in pipes, one after the other, in `$(...)`."""
    inner = re.findall(r"\$\((.*?)\)", line)
    parts = [part for text in [re.sub(r"\$\(.*?\)", "", line), *inner] for part in re.split(r"\||&&|;|>", _flat(text))]
    words = [shlex.split(part.replace("\0", "|").replace("\1", ";").replace("\2", ">")) for part in parts]
    found = []
    for one in words:
        if one[:2] == ["kubectl", "ctrl"]:
            found.append(one[2:])
        elif one[:1] == ["kubectl-ctrl"]:
            found.append(one[1:])
    return found


def _flat(text: str) -> str:
    """What stands in quotes is no operator."""
    return re.sub(r"'[^']*'", lambda quoted: quoted[0].replace("|", "\0").replace(";", "\1").replace(">", "\2"), text)


def verb_of(words: list[str]) -> tuple[Verb, list[str]]:
    name, rest = before_verb(words, GLOBAL_FLAGS, table.names())
    return table.load(table.find(name)), rest


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_verb_has_three_examples_that_parse(verb: Verb) -> None:
    own = 0
    for what, example in verb.examples:
        line = typed(example)
        assert len(line) <= 78, line
        assert len(what) <= 76, what
        assert what[0].isupper(), what
        assert not what.endswith("."), what
        found = calls(line)
        assert found, line
        for words in found:
            called, rest = verb_of(words)
            assert called.parse(rest, {}) is not None
            own += called.name == verb.name
    assert own >= 3


@pytest.mark.parametrize("entry", table.VERBS, ids=lambda entry: entry.name)
def test_its_line_is_one(entry: table.VerbEntry) -> None:
    verb = table.load(entry)
    assert (verb.name, verb.summary) == (entry.name, entry.summary)
    assert re.fullmatch(r"[A-Z][^\n]{10,74}\.", verb.summary)
    assert verb.usage.split()[0] == verb.name
    assert verb.help().startswith(f"{verb.summary}\n\n")


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_its_flags_are_in_order_and_say_what_they_are(verb: Verb) -> None:
    """Ours, by name; those that all verbs take, and kubectl's, are named by `options`."""
    names = [flag.long for flag in verb.flags]
    assert len(set(names)) == len(names)
    taken = GLOBAL_FLAGS if verb.cluster else COMMON_FLAGS  # up has a cluster of its own, and a namespace in that
    assert not {flag.long for flag in taken} & set(names)
    for flag in verb.flags:
        assert re.fullmatch(r"[A-Za-z0-9].*[.)…]", flag.help or "", re.DOTALL), f"--{flag.long}: {flag.help}"
        assert flag.metavar is None or flag.metavar.isupper() or ":" in flag.metavar, flag.long
    assert re.findall(r"^    (?:-., )?--([\w-]+)=", verb.help(), re.MULTILINE) == sorted(names)
    last = verb.help().splitlines()[-1]
    assert last.startswith('Use "kubectl ctrl options"')
    assert ("kubectl's own" in last) == verb.cluster


def test_options_keep_ours_and_kubectls_apart(capsys: pytest.CaptureFixture[str]) -> None:
    from kubectl_ctrl.cli import main as cli

    assert cli.main(["options"]) == 0
    ours, kubectls = capsys.readouterr().out.split(
        "Verbs that use a cluster of your kubeconfig also take kubectl's own flags:"
    )
    assert "--color" in ours
    assert "--context" not in ours
    assert "--context" in kubectls
    assert "--color" not in kubectls
    assert "Exceptions are --yes, --allow-context" in kubectls
