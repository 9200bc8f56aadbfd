"""The tree of errors: as its docstring draws it, and each class with what a shell needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kubectl_ctrl import errors
from kubectl_ctrl.errors import ApiError, CallError, CallSite, CtrlError, Forbidden, ProgramFailed, StatusCause

SITE = CallSite(verb="patch", target="deployments.apps default/web", audit_id="r7f3-12.3")

# `|   |-- Unreachable   401  exit  3  CTRL-UNREACHABLE  no answer`
LINE = re.compile(
    r"(?P<indent>(?:[|` ]   )*(?:[|`]-- )?)(?P<name>\w+)(?: +[45]\S\S)?(?: +exit +(?P<exit>\d+) +(?P<id>\S+))?"
)


def descendants(error: type[CtrlError]) -> Iterator[type[CtrlError]]:
    yield error
    for child in error.__subclasses__():
        yield from descendants(child)


def drawn() -> Iterator[tuple[int, str, str | None, str | None]]:
    assert errors.__doc__ is not None
    for line in errors.__doc__.splitlines()[2:]:
        if not line:
            return
        found = LINE.match(line)
        assert found is not None, line
        yield len(found["indent"]) // 4, found["name"], found["exit"], found["id"]


def own() -> list[type[CtrlError]]:
    return [error for error in descendants(CtrlError) if error.__module__ == errors.__name__]


def test_the_docstring_draws_the_tree() -> None:
    above: list[str] = []
    pairs = []
    for depth, name, _, _ in drawn():
        above[depth:] = [name]
        pairs.append((name, above[depth - 1] if depth else ""))
    classes = {error.__name__: error.__bases__[0].__name__ for error in own() if error is not CtrlError}
    assert dict(pairs) == classes | {"CtrlError": ""}


def test_the_docstring_names_ids_and_exit_codes() -> None:
    for _, name, code, name_of_error in drawn():
        error = getattr(errors, name)
        if code is not None:
            assert (int(code), name_of_error) == (error.exit_code, error.id), name
        else:
            parent = error.__bases__[0]
            assert (parent.exit_code, parent.id) == (error.exit_code, error.id), name


def test_exit_codes_have_one_meaning_each() -> None:
    assert {error.exit_code for error in own()} <= {1, 2, 3, 4, 5, 6, 7, 8, 124}


@pytest.mark.parametrize("error", own(), ids=lambda error: error.__name__)
def test_every_error_says_what_it_is(error: type[CtrlError]) -> None:
    assert error.__doc__
    assert re.fullmatch(r"CTRL-[A-Z]+(-[A-Z]+)*", error.id)


def test_an_error_is_its_sentence() -> None:
    error = CtrlError("The lamp 'a' is off.", tried="kubectl on", next_step="Switch it on.")
    assert (str(error), error.tried, error.next_step) == ("The lamp 'a' is off.", "kubectl on", "Switch it on.")


def test_an_api_error_carries_what_the_server_said() -> None:
    cause = StatusCause(reason="FieldValueInvalid", message="too many", field="spec.replicas")
    error = Forbidden(
        "No.", site=SITE, code=403, reason="Forbidden", causes=(cause,), next_step="Ask.", retry_after=2.5
    )
    assert (error.code, error.reason, error.causes, error.site) == (403, "Forbidden", (cause,), SITE)
    assert (error.next_step, error.retry_after) == ("Ask.", 2.5)
    assert isinstance(error, ApiError)
    assert isinstance(error, CallError)


def test_a_failed_program_quotes_its_command() -> None:
    error = ProgramFailed("It failed.", argv=("kind", "create", "a b"), outcome="exited with code 1", code=1)
    assert error.tried == "kind create 'a b'"
