"""All output passes one place, which escapes terminal control characters."""

from __future__ import annotations

import ast
from pathlib import Path

import kubectl_ctrl

PACKAGE = Path(kubectl_ctrl.__file__).parent
# App prints; these draw in place, and use the same function; one speaks a protocol to a shell, and one is a server.
PRINTING = {
    "cli/app.py",
    "cli/completion/main.py",
    "cli/verbs/trace/follow.py",
    "cli/output/progress.py",
    "cli/output/screen.py",
    "sandbox/__main__.py",
}


def prints(node: ast.AST) -> bool:
    """`print(...)`, or a write to a stream of the process or of App."""
    if not isinstance(node, ast.Call):
        return False
    match node.func:
        case ast.Name(id="print"):
            return True
        case ast.Attribute(attr="write" | "writelines", value=ast.Attribute(attr="out" | "err" | "stdout" | "stderr")):
            return True
        case ast.Attribute(attr="write" | "writelines", value=ast.Name(id="out" | "err" | "stdout" | "stderr")):
            return True
    return False


def test_nothing_else_prints() -> None:
    found = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if any(map(prints, ast.walk(ast.parse(file.read_text("utf-8")))))
    }
    assert found <= PRINTING, f"these print past App.answer and App.narrate: {sorted(found - PRINTING)}"
