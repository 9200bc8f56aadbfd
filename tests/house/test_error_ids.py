"""docs/errors.md explains every error id, and each has a test in which a shell user meets it."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from kubectl_ctrl.errors import CtrlError
from tests.house.checkout import REPOSITORY

PAGE = (REPOSITORY / "docs/errors.md").read_text()
_PARTS = ("Usual causes: ", "What to do: ")

_HERE = "tests/cli/test_error_ids.py"
# id -> the test that causes it and asserts the id, which may be a parameter of it.
PROVOKED = {
    "CTRL-USAGE": f"{_HERE}::test_words_that_mean_nothing",
    "CTRL-KUBECONFIG": f"{_HERE}::test_a_kubeconfig_that_names_no_such_context",
    "CTRL-CREDENTIALS": f"{_HERE}::test_a_credential_plugin_that_gives_none",
    "CTRL-UNREACHABLE": f"{_HERE}::test_nobody_who_listens",
    "CTRL-TLS": f"{_HERE}::test_a_server_that_nobody_vouches_for",
    "CTRL-DEADLINE": f"{_HERE}::test_a_server_that_does_not_answer_in_time",
    "CTRL-UNAUTHORIZED": f"{_HERE}::test_a_server_that_refuses",
    "CTRL-FORBIDDEN": f"{_HERE}::test_a_server_that_refuses",
    "CTRL-NOT-FOUND": f"{_HERE}::test_a_namespace_that_is_not_there",
    "CTRL-API": f"{_HERE}::test_a_server_that_refuses",
    "CTRL-BAD-ANSWER": f"{_HERE}::test_a_server_that_refuses",
    "CTRL-OUTCOME-UNKNOWN": f"{_HERE}::test_a_write_of_which_nobody_knows_what_became",
    "CTRL-NOT-LEADING": f"{_HERE}::test_a_write_of_a_process_that_may_lead_no_more",
    "CTRL-PREREQUISITE": f"{_HERE}::test_a_program_that_is_not_there",
    "CTRL-PROGRAM": f"{_HERE}::test_a_program_that_fails",
    "CTRL-CLUSTER": f"{_HERE}::test_a_cluster_whose_page_is_broken",
    "CTRL-NO-CLUSTER": f"{_HERE}::test_a_cluster_that_is_none_of_ours",
    "CTRL-REFUSED": f"{_HERE}::test_a_cluster_that_was_not_named_as_one_to_be_changed",
    "CTRL-NOT-RECORDED": f"{_HERE}::test_nothing_that_is_recorded",
    "CTRL-RECORDING": f"{_HERE}::test_a_recording_that_is_none",
    "CTRL-NOT-INSTALLED": f"{_HERE}::test_a_controller_whose_crd_is_not_there",
    "CTRL-TIMEOUT": f"{_HERE}::test_a_wait_that_ends_before_what_it_waits_for",
    "CTRL-CONTROLLER": f"{_HERE}::test_a_controller_that_is_declared_wrongly",
    "CTRL-TERMINAL": "e2e/test_errors.py::test_a_terminal_error_is_not_retried",
    "CTRL-ERROR": f"{_HERE}::test_a_folder_that_cannot_be_made",
}


def ids(error: type[CtrlError] = CtrlError) -> dict[str, int]:
    """Every id with its exit code."""
    if not error.__module__.startswith("kubectl_ctrl."):
        return {}
    found = {error.id: error.exit_code}
    for child in error.__subclasses__():
        for id_, code in ids(child).items():
            found.setdefault(id_, code)
    return found


@cache
def sections() -> dict[str, str]:
    heads = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(heads[::2], heads[1::2], strict=True))


def test_every_id_has_its_section_and_no_other_has_one() -> None:
    assert set(sections()) == set(ids())
    assert len(re.findall(r"^## ", PAGE, flags=re.MULTILINE)) == len(ids())


@pytest.mark.parametrize("id_", sorted(ids()))
def test_a_section_says_its_code_what_causes_it_and_what_to_do(id_: str) -> None:
    paragraphs = sections()[id_].strip().split("\n\n")
    assert paragraphs[0].startswith(f"Exit code {ids()[id_]}")
    assert [part for part in _PARTS if not any(one.startswith(part) for one in paragraphs)] == []


@cache
def provoking(place: str) -> dict[str, ast.FunctionDef]:
    """The tests of a file."""
    body = ast.parse((REPOSITORY / place).read_text()).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def asserted(test: ast.FunctionDef) -> set[str]:
    """The texts that a test compares with: in an `assert`, or as arguments of `told`, which runs one command."""
    parts = [
        part
        for node in ast.walk(test)
        if isinstance(node, ast.Assert)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "told")
        for part in ast.walk(node)
    ]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    if not names.isdisjoint(argument.arg for argument in test.args.args):
        parts += [part for decorator in test.decorator_list for part in ast.walk(decorator)]
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


@pytest.mark.parametrize("id_", sorted(ids()))
def test_somebody_at_a_shell_meets_it_in_a_test(id_: str) -> None:
    place, _, name = PROVOKED[id_].partition("::")
    assert id_ in asserted(provoking(place)[name])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_x():\n    run()  # CTRL-X", False),
        ("def test_x():\n    'CTRL-X'\n    assert run()", False),
        ("def test_x():\n    assert run().id == 'CTRL-X'", True),
        ("def test_x(capsys):\n    told(capsys, 'CTRL-X', 'list', 1)", True),
        ("@given('a', ['CTRL-X'])\ndef test_x(id_):\n    told(capsys, id_, 'list', 1)", True),
        ("@given('a', ['CTRL-X'])\ndef test_x(id_):\n    run(id_)", False),
    ],
)
def test_an_id_that_is_only_mentioned_is_not_met(text: str, expected: bool) -> None:
    (test,) = ast.parse(text).body
    assert isinstance(test, ast.FunctionDef)
    assert ("CTRL-X" in asserted(test)) == expected


def test_no_test_is_named_for_an_id_that_is_none() -> None:
    assert set(PROVOKED) == set(ids())
