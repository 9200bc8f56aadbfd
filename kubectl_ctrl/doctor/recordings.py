"""`doctor` about the recordings: whether they can be read, their size, and whether other users can read them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kubectl_ctrl.doctor.checks import PATIENCE, CheckInput, failed, info, ok, warn
from kubectl_ctrl.doctor.diagnosis import Line, Mark
from kubectl_ctrl.doctor.leftovers import Leftover
from kubectl_ctrl.errors import NotRecorded, RecordingError
from kubectl_ctrl.history.database import too_open as others_may
from kubectl_ctrl.history.integrity import health
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.history.pruning import Caps
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.text import size_text

_OVER = 1.2  # a run prunes the recording from time to time, so it can exceed the limit a little
_SHARE = 0.75  # of the timeout, for the integrity check


async def recording(bench: CheckInput) -> Sequence[Line]:
    path = recording_file(bench.user)
    end = bench.clock.elapsed() + PATIENCE * _SHARE
    try:
        found = await asyncio.to_thread(health, path, lambda: bench.clock.elapsed() < end)
    except NotRecorded:
        return (info("recording", f"nothing is recorded yet: {path}"),)
    except RecordingError as error:
        return (failed("recording", error),)
    text = f"{path}: {size_text(found.size)}, schema {found.version}"
    if found.size > Caps().size * _OVER:
        command = "kubectl ctrl record prune --older-than 24h --yes"
        lines = [warn("recording", f"{text}, which is over the limit that runs keep", command=command)]
    else:
        text += "" if found.whole else f"; too large to be checked completely in {PATIENCE:g} s"
        lines = [ok("recording", text)]
    if found.network:
        text = "it is on a network file system, so it uses a rollback journal, and a reader can delay a run"
        lines.append(info("recording", text, advice="set XDG_STATE_HOME to a folder on a local disk"))
    return [*lines, *(one.line for one in too_open(path))]


async def left(bench: CheckInput) -> list[Leftover]:
    """Its problems. A recording that cannot be read may be worth saving, so the user decides on it."""
    broken = [one for one in await recording(bench) if one.mark is Mark.FAIL]
    by_hand = [Leftover(check=one.check, text=one.text, advice=one.advice, command=one.command) for one in broken]
    return by_hand or too_open(recording_file(bench.user))


def too_open(path: Path) -> list[Leftover]:
    """File modes that let other users read or change it."""
    sentence = others_may(path) if path.exists() else ""
    if not sentence:
        return []
    target = next(one for one in (path, path.parent) if sentence.startswith(repr(str(one))))
    text = sentence.removeprefix(repr(str(target))).partition(": chmod")[0]

    async def close() -> str:
        target.chmod(target.stat().st_mode & 0o700)
        return f"only its owner can access {target} now"

    repair = str(command("chmod", "go=", target))
    return [Leftover(check="recording", text=f"{target}{text}", command=repair, mend=close)]
