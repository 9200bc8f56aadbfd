"""Programs that make clusters: where they are, the links through which they are started, and their last words.

A program that is started through a link in the cluster's folder can be found again by its path, whoever started it.
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
from kubectl_ctrl.clusters.registry import Entry

# How a program of this system begins: as compiled, or as a script. (Mach-O: for one processor, or for several.)
_COMPILED = {
    "linux": (b"\x7fELF",),
    "darwin": (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"),
}

# What tells nobody why it failed: information, and where in a program's source an error came up.
_INFORMATION = re.compile(r"""I\d{4} |\{.*"level":"(?i:info|debug)"|no stack trace$""")
_FRAMES = re.compile(r"^\S.*\n\t\S+\.(?:go|s):\d+.*\n?", re.MULTILINE)
_MOST_LINES, _LONGEST = 12, 400


def found(name: str, environ: Mapping[str, str], bin_dir: Path | None = None) -> Path | None:
    """The program's absolute path: in that folder alone, or, without one, where PATH leads.

    Where we were called from must not decide what is run: of PATH, only what is absolute counts.
    """
    folders = [str(bin_dir.absolute())] if bin_dir else environ.get("PATH", os.defpath).split(os.pathsep)
    path = shutil.which(name, path=os.pathsep.join(folder for folder in folders if Path(folder).is_absolute()))
    return Path(path) if path else None


def wrong(path: Path) -> str:
    """Why this file cannot be started here, as a clause; "" when it looks as if it could."""
    if not path.is_file():
        return "is not there"
    if not os.access(path, os.X_OK):
        return "is not executable"
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError:
        return ""  # what may be run may be unreadable
    known = _COMPILED.get(sys.platform)
    if known and not head.startswith((b"#!", *known)):
        return "is not a program for this system"
    return ""


def linked(entry: Entry, name: str, program: Path) -> Path:
    """`bin/NAME` in the cluster's folder, which leads to that program."""
    return link(entry.folder.resolve() / "bin" / name, program)


def link(path: Path, program: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileNotFoundError):
        path.unlink()
    path.symlink_to(program)
    return path


def fields(line: str) -> Mapping[str, object]:
    """Those of a line of a log in JSON; none where it is another line."""
    with suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return {}


def told(line: str) -> str:
    """What a line of a log says: of one in JSON its message, and the error that it is about."""
    found = fields(line)
    return ": ".join(str(found[key]) for key in ("msg", "error", "err") if found.get(key)) or line


def last_words(said: str, message: str) -> tuple[str, ...]:
    """The last lines of what a program said, few and without what the message has already."""
    lines = [plain(told(line), _LONGEST) for line in _FRAMES.sub("", said).splitlines() if not _INFORMATION.match(line)]
    return tuple(line for line in lines if line and line not in message)[-_MOST_LINES:]
