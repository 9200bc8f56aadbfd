"""`completion`: prints the script for a shell, or installs the program that kubectl calls for completion."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from importlib import resources
from pathlib import Path

from kubectl_ctrl import files
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.subcommands import chosen
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.cli.verbs.completion import ACTIONS
from kubectl_ctrl.errors import CtrlError, PrerequisiteMissing, Refused, UsageError
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.text import verbatim

PROGRAM, HELPER = "kubectl-ctrl", "kubectl_complete-ctrl"
_OWN = {"dir": ("install",), "remove": ("install",)}
# Only files with this line are replaced or removed.
_MARK = "# Made by `kubectl ctrl completion install`; `kubectl ctrl completion install --remove` takes it away."
# It finds kubectl-ctrl in PATH, as kubectl does, so it still works after an update that moves the program.
CONTENT = f"""\
#!/bin/sh
# Tells kubectl what may come next on a command line of `kubectl ctrl`.
{_MARK}
exec {PROGRAM} __complete "$@" 2>/dev/null
"""


class _Helper(Enum):
    """The file at the path of the helper."""

    NOTHING = 0
    MADE = 1  # by install, with the current content
    OLD = 2  # by install, with other content
    SHIPPED = 3  # by the package or the checkout, which works as well
    FOREIGN = 4


def run(app: App, given: ParsedCommandLine) -> int:
    action, words = chosen(given, "completion", ACTIONS, _OWN)
    if words:
        raise UsageError(f"completion {action} takes no {words[0]!r}.", next_step="kubectl ctrl completion --help")
    folder = Path(given["dir"]).expanduser().absolute() if given["dir"] else None
    if action != "install":
        script = resources.files("kubectl_ctrl.cli.verbs.completion") / "templates" / f"{action}.tmpl"
        app.answer(verbatim(script.read_text(encoding="utf-8")), end="")
    elif given["remove"]:
        _remove(app, [folder] if folder else _path(app))
    else:
        _install(app, folder)
    return 0


def _install(app: App, folder: Path | None) -> None:
    file = (folder or _chosen(app)) / HELPER
    there = _state(file)
    match there:
        case _Helper.FOREIGN:
            raise Refused(
                f"{str(file)!r} exists and was not created by kubectl ctrl.",
                next_step="select another folder of PATH with --dir",
            )
        case _Helper.MADE | _Helper.SHIPPED:
            app.answer(f"{file} already exists")
        case _:
            with _errors_of(file, "write"):
                files.replace(file, CONTENT.encode(), mode=0o755)
            app.answer(f"{file} {'created' if there is _Helper.NOTHING else 'updated'}")
    if file.parent not in _path(app):
        app.narrate(f"Add {str(file.parent)!r} to PATH, so that kubectl finds it.")
    if not _found(app, PROGRAM):
        app.narrate(f"{PROGRAM} is not in PATH, so neither the helper nor kubectl finds it.")
    app.narrate("A shell with kubectl's completion (kubectl completion --help) now also completes kubectl ctrl.")


def _remove(app: App, folders: list[Path]) -> None:
    """Remove only what install created."""
    made = [file for one in folders if _state(file := one / HELPER) in (_Helper.MADE, _Helper.OLD)]
    for file in made:
        with _errors_of(file, "remove"):
            file.unlink()
        app.answer(f"{file} removed")
    if not made:
        app.answer("nothing to remove")


def _state(file: Path) -> _Helper:
    if not file.is_symlink() and not file.exists():
        return _Helper.NOTHING
    try:
        content = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return _Helper.FOREIGN
    if _MARK in content and not file.is_symlink():
        return _Helper.MADE if content == CONTENT and os.access(file, os.X_OK) else _Helper.OLD
    return _Helper.SHIPPED if "kubectl_ctrl.cli.completion.main" in content or HELPER in content else _Helper.FOREIGN


def _chosen(app: App) -> Path:
    """The folder of the helper, or for a new one: beside the program, or a folder of PATH that belongs to the user."""
    if there := _found(app, HELPER):
        return there.parent
    path = _path(app)
    beside = [program.parent] if (program := _found(app, PROGRAM)) else []
    own = app.user.home / ".local" / "bin"
    below = [folder for folder in path if app.user.home in folder.parents]
    for folder in (*beside, *([own] if own in path else []), *below):
        if os.access(folder, os.W_OK | os.X_OK) and folder.is_dir():
            return folder
    raise PrerequisiteMissing(
        "No folder in PATH is writable.",
        tried=", ".join(map(str, dict.fromkeys((*beside, *below)))),
        next_step=f"{ctrl('completion', 'install', '--dir', own)}, with that folder in PATH",
    )


def _found(app: App, program: str) -> Path | None:
    """Its path, as a shell finds it."""
    found = shutil.which(program, path=app.user.environ.get("PATH", ""))
    return Path(found).absolute() if found else None


def _path(app: App) -> list[Path]:
    return [Path(folder).absolute() for folder in app.user.environ.get("PATH", "").split(os.pathsep) if folder]


@contextmanager
def _errors_of(file: Path, action: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CtrlError(
            f"Cannot {action} {str(file)!r}: {error.strerror}.", next_step="select another folder of PATH with --dir"
        ) from error
