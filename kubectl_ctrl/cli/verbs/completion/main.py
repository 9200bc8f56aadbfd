"""What `completion` does: prints a shell's script, and puts the helper that kubectl asks where kubectl finds it."""

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
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.cli.verbs.completion import ACTIONS
from kubectl_ctrl.errors import CtrlError, PrerequisiteMissing, Refused, UsageError
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.text import verbatim

PROGRAM, HELPER = "kubectl-ctrl", "kubectl_complete-ctrl"
_OWN = {"dir": ("install",), "remove": ("install",)}
# Whatever has this line is ours to write anew and to remove.
_MARK = "# Made by `kubectl ctrl completion install`; `kubectl ctrl completion install --remove` takes it away."
# kubectl finds the program in the same way, so this outlives updates that put it elsewhere.
CONTENT = f"""\
#!/bin/sh
# Tells kubectl what may come next on a command line of `kubectl ctrl`.
{_MARK}
exec {PROGRAM} __complete "$@" 2>/dev/null
"""


class _Is(Enum):
    """What there is where the helper would be."""

    NOTHING = 0
    MADE = 1  # by install, and as it would make it now
    OLD = 2  # by install, of another version
    SHIPPED = 3  # by the package or the checkout, as good as ours
    FOREIGN = 4


def run(app: App, given: Given) -> int:
    """The body of the verb."""
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
    there = _what(file)
    match there:
        case _Is.FOREIGN:
            raise Refused(
                f"{str(file)!r} is there, and it is none of ours.", next_step="name another folder of PATH with --dir"
            )
        case _Is.MADE | _Is.SHIPPED:
            app.answer(f"{file} is there already")
        case _:
            _write(file)
            app.answer(f"{file} {'made' if there is _Is.NOTHING else 'made anew'}")
    if file.parent not in _path(app):
        app.narrate(f"kubectl finds it once {str(file.parent)!r} is in PATH.")
    if not _found(app, PROGRAM):
        app.narrate(f"{PROGRAM} itself is not in PATH, so neither that nor kubectl finds it.")
    app.narrate("A shell that completes kubectl (kubectl completion --help) completes kubectl ctrl now, too.")


def _remove(app: App, folders: list[Path]) -> None:
    """What install made, and nothing else."""
    made = [file for one in folders if _what(file := one / HELPER) in (_Is.MADE, _Is.OLD)]
    for file in made:
        with _told(file, "removed"):
            file.unlink()
        app.answer(f"{file} removed")
    if not made:
        app.answer("there is nothing to remove")


def _what(file: Path) -> _Is:
    if not file.is_symlink() and not file.exists():
        return _Is.NOTHING
    try:
        content = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return _Is.FOREIGN
    if _MARK in content and not file.is_symlink():
        return _Is.MADE if content == CONTENT and os.access(file, os.X_OK) else _Is.OLD
    return _Is.SHIPPED if "kubectl_ctrl.cli.completion.main" in content or HELPER in content else _Is.FOREIGN


def _write(file: Path) -> None:
    with _told(file, "written"):
        files.replace(file, CONTENT.encode(), mode=0o755)


def _chosen(app: App) -> Path:
    """Where the helper is, or where it should be: beside the program, or in a folder of PATH that is the user's own."""
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
        "There is no folder in PATH that could be written to.",
        tried=", ".join(map(str, dict.fromkeys((*beside, *below)))),
        next_step=f"{ctrl('completion', 'install', '--dir', own)}, with that folder in PATH",
    )


def _found(app: App, program: str) -> Path | None:
    """Where a shell finds it."""
    found = shutil.which(program, path=app.user.environ.get("PATH", ""))
    return Path(found).absolute() if found else None


def _path(app: App) -> list[Path]:
    return [Path(folder).absolute() for folder in app.user.environ.get("PATH", "").split(os.pathsep) if folder]


@contextmanager
def _told(file: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CtrlError(
            f"{str(file)!r} cannot be {what}: {error.strerror}.", next_step="name another folder of PATH with --dir"
        ) from error
