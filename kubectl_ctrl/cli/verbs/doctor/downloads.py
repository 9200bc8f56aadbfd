"""`doctor --fix kind|kwok|kubectl`: installs a program with go, brew or apt, or prints the command.

kubectl ctrl downloads nothing itself. The Go toolchain verifies downloads against Go's checksum database, and brew and
apt against their own signatures and digests.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kubectl_ctrl import exec as programs
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.doctor.tools import search_path
from kubectl_ctrl.errors import PrerequisiteMissing, Refused
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.value import Value

_PATIENCE = 1800.0  # seconds: go compiles, and package managers update their lists first


class Recipe(Value, kw_only=True):
    """The ways to install a tool."""

    brings: tuple[str, ...]  # programs
    go: tuple[str, ...] = ()  # packages, each with its version
    brew: str = ""
    apt: str = ""
    page: str = ""  # its documentation


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


async def install(app: App, given: ParsedCommandLine, name: str) -> int:
    """The body of `--fix NAME`."""
    recipe, path = RECIPES[name], search_path(app.user.environ)
    installed = [shutil.which(program, path=path) for program in recipe.brings]
    if all(installed):
        app.answer(f"{name} is already installed: {', '.join(filter(None, installed))}")
        return 0
    argv = _command(name, recipe, path)
    app.answer(str(command(*argv)))
    if not given["yes"]:
        raise Refused(f"This would install {name}.", next_step=given.again("doctor", "--fix", "--yes"))
    await programs.run(argv, timeout=_PATIENCE, env=app.user.environ, heard=app.narrate)
    await _report(app, recipe, argv[0])
    return 0


def _command(name: str, recipe: Recipe, path: str) -> list[str]:
    """The command for the first of go, brew and apt that is installed and has the tool."""
    for program, words in _ways(recipe):
        if words and shutil.which(program, path=path):
            return words
    installers = [program for program, words in _ways(recipe) if words]
    raise PrerequisiteMissing(
        f"No program on this machine can install {name}.",
        tried=", ".join(f"{program} (not in PATH)" for program in installers),
        next_step=f"install one of these, or {name} itself: {recipe.page}",
    )


def _ways(recipe: Recipe) -> tuple[tuple[str, list[str]], ...]:
    root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    return (
        ("go", ["go", "install", *recipe.go] if recipe.go else []),
        ("brew", ["brew", "install", recipe.brew] if recipe.brew else []),
        ("apt-get", [*root, "apt-get", "install", "--yes", recipe.apt] if recipe.apt else []),
    )


async def _report(app: App, recipe: Recipe, way: str) -> None:
    """Print the paths of the programs; go often installs into a folder that is not in PATH."""
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
            f"The command succeeded, but {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed.",
            next_step=f"check its output, or install it by hand: {recipe.page}",
        )
    app.answer(f"export PATH={command(folder)}:$PATH")
    app.narrate(f"Go's folder {folder} is not in PATH: the line above adds it.")


async def _go_folder(app: App) -> Path | None:
    """The folder of `go install`."""
    output = await programs.run(["go", "env", "GOBIN", "GOPATH"], timeout=30.0, env=app.user.environ)
    own, _, work = output.stdout.partition("\n")
    first = work.strip().split(os.pathsep)[0]
    return Path(own) if own.strip() else Path(first) / "bin" if first else None
