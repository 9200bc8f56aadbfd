"""A suggested command is a value, quoted in one place: no name or path can become a second command."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kubectl_ctrl

PACKAGE = Path(kubectl_ctrl.__file__).parent
# Places that quote: suggestions, messages about programs, and a script.
QUOTING = {"model/suggestions.py", "errors.py", "exec.py", "clusters/kind/container_runtimes.py"}
_THEIRS = "annotate|apply|config|create|delete|describe|edit|get|label|logs|patch|replace|rollout|scale"
# The arguments of a command, up to the place of a value.
BEGUN = re.compile(
    rf"\bkubectl (ctrl [^;,:\"]*|({_THEIRS})\b[^;,:]*)$|\b(chmod|mkdir|mv|rm|export) [^;,:]*$"
    r"|--(name|context|allow-context|recorded-cluster|namespace|kubeconfig) $"
)
# Help texts show the usage of a verb; and a pin goes into a command that is there.
NO_VALUES = {"cli/parsing/verb.py", "target/pin.py"}


def begun(tree: ast.AST) -> Iterator[str]:
    """The text before a value in an f-string, if it is the start of a command."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for part, value in zip(node.values, node.values[1:], strict=False):
                text = part.value if isinstance(part, ast.Constant) else None
                if isinstance(value, ast.FormattedValue) and not quoted(value) and BEGUN.search(str(text)):
                    yield str(text)


def quoted(one: ast.FormattedValue) -> bool:
    """It is part of a command, not a value that a sentence quotes."""
    call = one.value
    made = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("command", "ctrl")
    return made or one.conversion == ord("r")


# Controllers use only the public API.
FILES = sorted(file for file in PACKAGE.rglob("*.py") if "controllers" not in file.relative_to(PACKAGE).parts)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_no_command_is_built_from_text(file: Path) -> None:
    source = file.read_text("utf-8")
    name = file.relative_to(PACKAGE).as_posix()
    assert name in QUOTING or "import shlex" not in source, "words are quoted by model.suggestions alone"
    found = [] if name in NO_VALUES else list(begun(ast.parse(source)))
    assert not found, f"model.suggestions makes commands: {found}"
