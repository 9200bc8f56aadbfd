from __future__ import annotations

import io
import os

import pytest

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.main import run
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.cli.verbs import table
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.user import User
from tests.objects import present


def given(*words: str) -> ParsedCommandLine:
    return present(table.load(table.find("uninstall")).parse(words, {}))


@pytest.mark.parametrize(
    ("words", "again"),
    [
        (("foo",), "kubectl ctrl uninstall foo --yes"),
        (("foo", "--yes=false"), "kubectl ctrl uninstall foo --yes"),
        (("--context", "a b", "foo", "-n", "x"), "kubectl ctrl uninstall foo '--context=a b' --namespace=x --yes"),
        (("foo", "--clean"), "kubectl ctrl uninstall foo --clean --yes"),
        (
            ("foo", "--token", "s3cret", "--password=s3cret"),
            "kubectl ctrl uninstall foo --token=... --password=... --yes",
        ),
        (("--", "-foo"), "kubectl ctrl uninstall --yes -- -foo"),
    ],
)
def test_the_command_to_repeat_is_the_one_that_was_typed(words: tuple[str, ...], again: str) -> None:
    assert given(*words).again("uninstall", "--yes") == again


@pytest.mark.parametrize("name", table.names())
def test_a_variable_sets_every_flag_but_those_that_are_about_one_call(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb = table.load(table.find(name))
    about_one_call = {"yes", "allow-context", "takeover", "force", "crds", "help"}
    for flag in verb.all_flags:
        assert flag.envvar == (None if flag.long in about_one_call else variable(flag.long))
    plain = present(verb.parse([], {}))
    for long in about_one_call:
        monkeypatch.setenv(variable(long), "true")
    assert verb.parse([], os.environ) == plain


def test_only_the_environment_that_is_given_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable("output"), "yaml")
    for environ, head in (({}, "kubectl-ctrl "), ({variable("output"): "json"}, "{")):
        out = io.StringIO()
        assert run(App(out=out, err=io.StringIO(), user=User(environ)), ["version"]) == 0
        assert out.getvalue().startswith(head)


def test_a_variable_gives_way_to_the_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable("provider"), "kwok")
    monkeypatch.setenv(variable("keep-on-failure"), "true")
    verb = table.load(table.find("up"))
    by_variable, by_flag = verb.parse([], os.environ), verb.parse(["--provider=kind"], os.environ)
    assert by_variable is not None
    assert by_flag is not None
    assert [one["provider"] for one in (by_variable, by_flag)] == ["kwok", "kind"]
    assert by_variable["keep_on_failure"] is True


@pytest.mark.parametrize("flag", ["nodes", "provider"])
def test_a_wrong_value_is_told_of_what_was_written(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*words: str) -> None:
        made = present(table.load(table.find("up")).parse(words, os.environ))
        made.one_of("provider", ("kind", "kwok"))

    def told(*words: str) -> str:
        with pytest.raises(UsageError) as caught:
            taken(*words)
        return str(caught.value)

    monkeypatch.setenv(variable(flag), "x")
    assert told().startswith(f"Invalid value for {variable(flag)}: 'x'")
    assert told(f"--{flag}=y").startswith(f"Invalid value for --{flag}: 'y'")


def variable(flag: str) -> str:
    return f"KUBECTL_CTRL_{flag.upper().replace('-', '_')}"


def test_a_flag_of_kubectl_is_not_taken_for_another() -> None:
    up = table.load(table.find("up"))
    with pytest.raises(UsageError, match=r"^up does not take --kubeconfig: it uses no cluster of your kubeconfig\.$"):
        up.parse(["foo", "--kubeconfig=mine"], {})
    with pytest.raises(UsageError, match=r"^Unknown flag: '--usee'\.$"):
        up.parse(["foo", "--usee"], {})
    assert up.parse(["--namespace=web", "--", "--as"], {}) is not None
