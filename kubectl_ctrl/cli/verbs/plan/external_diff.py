"""Compares objects as text: itself, or with the program in KUBECTL_EXTERNAL_DIFF, as kubectl diff does.

The program gets two folders, LIVE-... and MERGED-..., and after them those words of the variable that consist only of
letters, digits, dashes and equals signs. It inherits the terminal. Exit codes above 1 are failures.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from kubectl_ctrl import exec as programs
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.errors import ProgramFailed
from kubectl_ctrl.render.plan_diff import Sides, unified

VARIABLE = "KUBECTL_EXTERNAL_DIFF"
_WORD = re.compile(r"[a-zA-Z0-9-=]+")
_NO_FILE = re.compile(r"[^a-zA-Z0-9._-]")
_LONGEST = 200  # file systems allow 255 bytes


def compare(app: App, objects: Sequence[Sides]) -> None:
    """Print the differences; nothing for equal objects."""
    differing = [one for one in objects if one.live != one.merged]
    program = app.user.environ.get(VARIABLE, "")
    if program and differing:
        asyncio.run(_externally(app, program.split(" "), differing))
        return
    for one in differing:
        for line in unified(one, color=app.color):
            app.answer(line)


async def _externally(app: App, words: Sequence[str], objects: Sequence[Sides]) -> None:
    with ExitStack() as folders:
        live, merged = (Path(folders.enter_context(TemporaryDirectory(prefix=name))) for name in ("LIVE-", "MERGED-"))
        for one in objects:
            name = _file_name(one.name)
            (live / name).write_text(one.live, encoding="utf-8")
            (merged / name).write_text(one.merged, encoding="utf-8")
        argv = (words[0], str(live), str(merged), *(word for word in words[1:] if _WORD.fullmatch(word)))
        app.out.flush()
        done = await programs.run(argv, timeout=None, env=app.user.environ, shown=True, check=False)
    if done.code not in (0, 1):
        how = f"exited with code {done.code}" if done.code > 0 else f"was terminated by signal {-done.code}"
        raise ProgramFailed(
            f"The program {words[0]!r} in {VARIABLE} {how}.",
            argv=argv,
            outcome=how,
            code=done.code,
        )


def _file_name(name: str) -> str:
    """A name without path separators; a long name is truncated and gets a hash, to stay unique."""
    plain = _NO_FILE.sub("-", name)
    if len(plain) <= _LONGEST:
        return plain
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[: _LONGEST - len(digest) - 1]}-{digest}"
