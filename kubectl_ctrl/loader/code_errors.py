"""Errors in a user's code while it is loaded, with their position in that code."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from kubectl_ctrl.errors import ControllerError, CtrlError
from kubectl_ctrl.value import Value

AS_PROGRAM = 'move the code of the program below `if __name__ == "__main__":`'

_PACKAGE = Path(__file__).resolve().parents[1]


class CodePosition(Value):
    """A position in a source file; columns count from 1, and 0 is unknown."""

    file: Path
    line: int = 0
    column: int = 0
    text: str = ""  # of the line

    def __str__(self) -> str:
        numbers = [str(number) for number in (self.line, self.column) if number]
        return ":".join([shown(self.file), *numbers])


def shown(path: Path) -> str:
    """The path, relative if it is below the current folder."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def error_at(place: CodePosition, what: str, next_step: str = "") -> ControllerError:
    """`mine.py:7:14: what`, and below it the line of code."""
    tried = f"line {place.line}: {place.text.strip()}" if place.text.strip() else ""
    return ControllerError(f"{place}: {what}", tried=tried, next_step=next_step or "correct it and repeat the command")


def from_error(
    error: BaseException, main: Path, own: Callable[[Path], bool], environ: Mapping[str, str]
) -> tuple[ControllerError, CodePosition]:
    """The error that stopped the import of `main`, at the innermost line of the user's own code."""
    if isinstance(error, SyntaxError) and error.filename:
        place = CodePosition(Path(error.filename), error.lineno or 0, error.offset or 0, error.text or "")
        return error_at(place, f"It does not compile: {_sentence(str(error.msg))}"), place
    place = _raised(error, own) or CodePosition(main)
    if isinstance(error, ModuleNotFoundError):
        return error_at(place, _sentence(str(error)), _how_to_install(error.name or "", environ)), place
    if isinstance(error, CtrlError):
        return error_at(place, error.message, error.next_step), place
    if isinstance(error, SystemExit):
        what = f"It exits the process ({error.code!r}) when it is imported."
        return error_at(place, what, AS_PROGRAM), place
    if isinstance(error, UnicodeDecodeError | ValueError) and place.line == 0:
        return error_at(place, f"It does not compile: {_sentence(_one_line(error))}"), place
    text = _one_line(error)
    what = f"It cannot be imported: {type(error).__name__}" + (f": {text}" if text else "")
    return error_at(place, _sentence(what)), place


def _raised(error: BaseException, own: Callable[[Path], bool]) -> CodePosition | None:
    """The last line of the user's code in the traceback, else the last that is not in this package or the importer."""
    frames = traceback.TracebackException.from_exception(error, lookup_lines=True).stack
    mine = [frame for frame in frames if own(Path(frame.filename))]
    files = [frame for frame in frames if Path(frame.filename).is_file()]  # frames of the importer have no file
    others = [frame for frame in files if not Path(frame.filename).is_relative_to(_PACKAGE)]
    for frame in reversed(mine or others):
        column = (frame.colno or 0) + 1 if frame.colno is not None else 0
        return CodePosition(Path(frame.filename), frame.lineno or 0, column, frame.line or "")
    return None


def _how_to_install(module: str, environ: Mapping[str, str]) -> str:
    """The command that installs a missing module into the right environment."""
    name = re.sub(r"[^\w.-]", "", module.partition(".")[0])
    version = "{}.{}".format(*sys.version_info)
    active = environ.get("VIRTUAL_ENV", "")
    if active and Path(active).resolve() != Path(sys.prefix).resolve():
        if site_packages(Path(active)).is_dir():
            return f"pip install {name}, in the active environment ({active})"
        return (
            f"the active environment ({active}) does not have Python {version}, on which kubectl-ctrl runs; "
            f"create one with {version} and pip install {name} there"
        )
    if (Path(sys.prefix) / "ready").exists():  # bin/kubectl-ctrl created it, and would recreate it without the module
        return (
            f"python{version} -m venv .venv && . .venv/bin/activate && pip install {name}; "
            "kubectl-ctrl finds the packages of the active environment"
        )
    return f"{sys.executable} -m pip install {name}"


def site_packages(environment: Path) -> Path:
    """The packages of a virtual environment, if it has this Python's version."""
    return environment / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"


def _one_line(error: BaseException) -> str:
    try:
        return " ".join(str(error).split())
    except Exception:  # noqa: BLE001  # str() of a user's error may raise, too
        return ""


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
