"""Checks the maximum sizes: `ceilings.py ROOT`. Exceptions are in ceilings.toml, by name and with a reason."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE_LINES = 500
FUNCTION_LINES = 60
PARAMETERS = 7

FOLDERS = ("kubectl_ctrl", "tests", "e2e", "hack")
EXCEPTIONS = Path("hack/check.d/ceilings.toml")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """A file or function that is too large; `name` is its name in ceilings.toml."""

    name: str
    line: int
    sentence: str


def excesses(file: Path, name: str) -> Iterator[Excess]:
    text = file.read_text()
    if (lines := text.count("\n")) > FILE_LINES:
        yield Excess(name=name, line=1, sentence=f"The file has {lines} lines, more than {FILE_LINES}.")
    if file.suffix == ".py":
        for function, path in functions(ast.parse(text), ()):
            for sentence in violations(function):
                yield Excess(name=f"{name}:{path}", line=function.lineno, sentence=f"{path} {sentence}")


def functions(node: ast.AST, path: tuple[str, ...]) -> Iterator[tuple[Function, str]]:
    """Every function below `node` with its dotted name within the file."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child, ".".join((*path, child.name))
        inner = (*path, child.name) if isinstance(child, (Function, ast.ClassDef)) else path
        yield from functions(child, inner)


def violations(function: Function) -> Iterator[str]:
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if lines > FUNCTION_LINES:
        yield f"has {lines} lines, more than {FUNCTION_LINES}."
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    names += [rest.arg for rest in (given.vararg, given.kwarg) if rest]
    count = len(names) - (names[:1] in (["self"], ["cls"]))
    if count > PARAMETERS:
        yield f"takes {count} parameters, more than {PARAMETERS}."


def exceptions(root: Path) -> dict[str, str]:
    """Name -> reason."""
    file = root / EXCEPTIONS
    return dict(tomllib.loads(file.read_text())) if file.exists() else {}


def problems(root: Path) -> Iterator[str]:
    allowed = exceptions(root)
    yield from (f"{EXCEPTIONS}: {name!r} has no reason." for name, reason in allowed.items() if not reason.strip())
    used = set()
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            name = file.relative_to(root).as_posix()
            for excess in excesses(file, name):
                used.add(excess.name)
                if excess.name not in allowed:
                    yield f"{name}:{excess.line}: {excess.sentence}"
    yield from (f"{EXCEPTIONS}: {name!r} no longer needs an exception." for name in allowed if name not in used)


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(bool(found))
