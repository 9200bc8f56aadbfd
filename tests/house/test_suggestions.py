"""A command that is suggested is a value, quoted in one place: no name or path can become a second command."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kubectl_ctrl

PACKAGE = Path(kubectl_ctrl.__file__).parent
# Where words are quoted: of suggestions, of programs that ran, and in a script that is started.
QUOTING = {"model/suggestions.py", "errors.py", "exec.py", "clusters/kind/container_runtimes.py"}
_THEIRS = "annotate|apply|config|create|delete|describe|edit|get|label|logs|patch|replace|rollout|scale"
# The words of a command, up to where a value would be put in.
BEGUN = re.compile(
    rf"\bkubectl (ctrl [^;,:\"]*|({_THEIRS})\b[^;,:]*)$|\b(chmod|mkdir|mv|rm|export) [^;,:]*$"
    r"|--(name|context|allow-context|recorded-cluster|namespace|kubeconfig) $"
)
# Help texts show the usage of a verb; and a pin goes into a command that is there.
NO_VALUES = {"cli/parsing/verb.py", "target/pin.py"}


def begun(tree: ast.AST) -> Iterator[str]:
    """What stands before a value in an f-string, where that is the beginning of a command."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for part, value in zip(node.values, node.values[1:], strict=False):
                text = part.value if isinstance(part, ast.Constant) else None
                if isinstance(value, ast.FormattedValue) and not quoted(value) and BEGUN.search(str(text)):
                    yield str(text)


def quoted(one: ast.FormattedValue) -> bool:
    """Whether it is a part of a command, or a value that a sentence quotes."""
    call = one.value
    made = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("command", "ctrl")
    return made or one.conversion == ord("r")


# Controllers are written on the public API alone.
FILES = sorted(file for file in PACKAGE.rglob("*.py") if "controllers" not in file.relative_to(PACKAGE).parts)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_no_command_is_built_from_text(file: Path) -> None:
    source = file.read_text("utf-8")
    name = file.relative_to(PACKAGE).as_posix()
    assert name in QUOTING or "import shlex" not in source, "words are quoted by model.suggestions alone"
    found = [] if name in NO_VALUES else list(begun(ast.parse(source)))
    assert not found, f"model.suggestions makes commands: {found}"
