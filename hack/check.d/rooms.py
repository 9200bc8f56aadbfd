"""Checks that each package states what belongs there, and that its `__init__` has no code: `rooms.py ROOT`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "kubectl_ctrl"
HEADINGS = ("Belongs here:", "Does not belong here:")
# Their __init__ lists the bundled controllers, and contains the spec of a controller or the declaration of a verb.
WITH_CODE = ("controllers", "cli/verbs")


def problems(root: Path) -> Iterator[str]:
    package = root / PACKAGE
    folders = sorted({file.parent for file in package.rglob("*.py")} - {package})
    for folder in folders:
        file = folder / "__init__.py"
        name = file.relative_to(root).as_posix()
        if not file.exists():
            yield f"{name}: is missing, so the folder is not a package."
            continue
        yield from (
            f"{name}: {sentence}" for sentence in violations(ast.parse(file.read_text()), folder.relative_to(package))
        )


def violations(module: ast.Module, folder: Path) -> Iterator[str]:
    docstring = ast.get_docstring(module) or ""
    if not docstring:
        yield "has no docstring."
    elif len(folder.parts) == 1:
        yield from (f"its docstring lacks {words!r}." for words in HEADINGS if words not in docstring)
    if not folder.as_posix().startswith(WITH_CODE) and (code := [node for node in module.body if not is_prose(node)]):
        yield f"line {code[0].lineno}: contains code; import from the file that defines the name instead."


def is_prose(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(bool(found))
