"""The programs that create clusters: their paths, the links through which they are started, and their output.

A program that was started through a link in the cluster's folder is found by its path, even after a kill of kubectl
ctrl.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kubectl_ctrl.client.words import plain
from kubectl_ctrl.clusters.registry import ClusterEntry

# The first bytes of a compiled program of this system. (Mach-O: for one architecture, or for several.)
_COMPILED = {
    "linux": (b"\x7fELF",),
    "darwin": (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"),
}

# Lines of output that do not explain a failure: information, and stack traces.
_INFORMATION = re.compile(r"""I\d{4} |\{.*"level":"(?i:info|debug)"|no stack trace$""")
_FRAMES = re.compile(r"^\S.*\n\t\S+\.(?:go|s):\d+.*\n?", re.MULTILINE)
_MOST_LINES, _LONGEST = 12, 400


def found(name: str, environ: Mapping[str, str], bin_dir: Path | None = None) -> Path | None:
    """The program's absolute path in that folder, or, without one, in PATH.

    Relative folders in PATH are skipped: the current directory must not decide which program runs.
    """
    folders = [str(bin_dir.absolute())] if bin_dir else environ.get("PATH", os.defpath).split(os.pathsep)
    path = shutil.which(name, path=os.pathsep.join(folder for folder in folders if Path(folder).is_absolute()))
    return Path(path) if path else None


def wrong(path: Path) -> str:
    """The reason why this file cannot be executed here, as a clause; "" if none is found."""
    if not path.is_file():
        return "is not there"
    if not os.access(path, os.X_OK):
        return "is not executable"
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError:
        return ""  # an executable file may be unreadable
    known = _COMPILED.get(sys.platform)
    if known and not head.startswith((b"#!", *known)):
        return "is not a program for this system"
    return ""


def linked(entry: ClusterEntry, name: str, program: Path) -> Path:
    """A link `bin/NAME` in the cluster's folder to that program."""
    return link(entry.folder.resolve() / "bin" / name, program)


def link(path: Path, program: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileNotFoundError):
        path.unlink()
    path.symlink_to(program)
    return path


def fields(line: str) -> Mapping[str, object]:
    """The fields of a log line in JSON; none for another line."""
    with suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return {}


def message_of(line: str) -> str:
    """The message of a log line, and its error if it is in JSON."""
    found = fields(line)
    return ": ".join(str(found[key]) for key in ("msg", "error", "err") if found.get(key)) or line


def last_words(output: str, message: str) -> tuple[str, ...]:
    """A few last lines of a program's output, without those that the message contains."""
    lines = _FRAMES.sub("", output).splitlines()
    lines = [plain(message_of(line), _LONGEST) for line in lines if not _INFORMATION.match(line)]
    return tuple(line for line in lines if line and line not in message)[-_MOST_LINES:]
