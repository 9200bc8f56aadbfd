"""What `doctor --fix kind|kwok|kubectl` does: gets a program with what is there for that, or says with which line.

Nothing is downloaded by us. The Go toolchain verifies what it gets against Go's checksum database, and brew and apt
what they get against their own signatures and digests.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kubectl_ctrl import exec as programs
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.doctor.tools import search_path
from kubectl_ctrl.errors import PrerequisiteMissing, Refused
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.value import Value

# A compiler at work, and a package manager that looks for news first.
_PATIENCE = 1800.0


class Recipe(Value, kw_only=True):
    """How one of our helpers is got, by what can get it; and where people read about it."""

    brings: tuple[str, ...]  # programs
    go: tuple[str, ...] = ()  # packages, each with its version
    brew: str = ""
    apt: str = ""
    page: str = ""


RECIPES = {
    "kind": Recipe(brings=("kind",), go=("sigs.k8s.io/kind@v0.33.0",), brew="kind", page="https://kind.sigs.k8s.io"),
    "kwok": Recipe(
        brings=("kwok", "kwokctl"),
        go=("sigs.k8s.io/kwok/cmd/kwok@v0.8.0", "sigs.k8s.io/kwok/cmd/kwokctl@v0.8.0"),
        brew="kwok",
        page="https://kwok.sigs.k8s.io",
    ),
    "kubectl": Recipe(
        brings=("kubectl",), brew="kubernetes-cli", apt="kubectl", page="https://kubernetes.io/docs/tasks/tools"
    ),
}


async def fetched(app: App, given: Given, name: str) -> int:
    """The body of `--fix NAME`."""
    recipe, path = RECIPES[name], search_path(app.user.environ)
    there = [shutil.which(program, path=path) for program in recipe.brings]
    if all(there):
        app.answer(f"{name} is there already: {', '.join(filter(None, there))}")
        return 0
    argv = _line(name, recipe, path)
    app.answer(str(command(*argv)))
    if not given["yes"]:
        raise Refused(f"This would get {name}.", next_step=given.again("doctor", "--fix", "--yes"))
    await programs.run(argv, timeout=_PATIENCE, env=app.user.environ, heard=app.narrate)
    await _tell(app, recipe, argv[0])
    return 0


def _line(name: str, recipe: Recipe, path: str) -> list[str]:
    """The command that gets it with the first of go, brew and apt that is there and knows it."""
    for program, words in _ways(recipe):
        if words and shutil.which(program, path=path):
            return words
    able = [program for program, words in _ways(recipe) if words]
    raise PrerequisiteMissing(
        f"There is nothing here that gets {name}.",
        tried=", ".join(f"{program} (not in PATH)" for program in able),
        next_step=f"get one of these, or {name} itself: {recipe.page}",
    )


def _ways(recipe: Recipe) -> tuple[tuple[str, list[str]], ...]:
    root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    return (
        ("go", ["go", "install", *recipe.go] if recipe.go else []),
        ("brew", ["brew", "install", recipe.brew] if recipe.brew else []),
        ("apt-get", [*root, "apt-get", "install", "--yes", recipe.apt] if recipe.apt else []),
    )


async def _tell(app: App, recipe: Recipe, way: str) -> None:
    """Where it is now; what go installs is often not where the shell looks."""
    path = search_path(app.user.environ)
    missing = [program for program in recipe.brings if shutil.which(program, path=path) is None]
    for program in recipe.brings:
        if program not in missing:
            app.answer(f"{program} is {shutil.which(program, path=path)}")
    if not missing:
        return
    folder = await _go_folder(app) if way == "go" else None
    if folder is None or not all((folder / program).is_file() for program in missing):
        raise PrerequisiteMissing(
            f"It ended well, and {' and '.join(missing)} is still not there.",
            next_step=f"see what it said, or get it by hand: {recipe.page}",
        )
    app.answer(f"export PATH={command(folder)}:$PATH")
    app.narrate(f"Go's folder {folder} is not in PATH: the line above adds it.")


async def _go_folder(app: App) -> Path | None:
    """Where `go install` puts programs."""
    said = await programs.run(["go", "env", "GOBIN", "GOPATH"], timeout=30.0, env=app.user.environ)
    own, _, work = said.stdout.partition("\n")
    first = work.strip().split(os.pathsep)[0]
    return Path(own) if own.strip() else Path(first) / "bin" if first else None
