"""Programs that make clusters: where they are, and the links through which they are started.

A program that is started through a link in the cluster's folder can be found again by its path, whoever started it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kubectl_ctrl.clusters.book import Entry

# How a program of this system begins: as compiled, or as a script. (Mach-O: for one processor, or for several.)
_COMPILED = {
    "linux": (b"\x7fELF",),
    "darwin": (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"),
}


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
        return "is no program of this system"
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
