"""What `doctor` says of the recordings: whether they can be read, how big they are, and who else can read them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kubectl_ctrl.doctor.checks import PATIENCE, Bench, failed, info, ok, warn
from kubectl_ctrl.doctor.diagnosis import Line, Mark
from kubectl_ctrl.doctor.leftovers import Leftover
from kubectl_ctrl.errors import NotRecorded, RecordingError
from kubectl_ctrl.history.database import too_open as others_may
from kubectl_ctrl.history.integrity import Health, health
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.history.pruning import Caps
from kubectl_ctrl.model.suggestions import command
from kubectl_ctrl.text import size_text

# A run keeps within the cap by and by.
_OVER = 1.2
_MOST_OF_IT = 0.75


async def recording(bench: Bench) -> Sequence[Line]:
    path = recording_file(bench.user)
    end = bench.clock.elapsed() + PATIENCE * _MOST_OF_IT
    try:
        found = await asyncio.to_thread(health, path, lambda: bench.clock.elapsed() < end)
    except NotRecorded:
        return (info("recording", f"nothing is recorded yet: {path}"),)
    except RecordingError as error:
        return (failed("recording", error),)
    return [_size(path, found), *_beside(path, found), *(one.line for one in too_open(path))]


def _size(path: Path, found: Health) -> Line:
    text = f"{path}: {size_text(found.size)}, schema {found.version}"
    if found.size > Caps().size * _OVER:
        command = "kubectl ctrl record prune --older-than 24h --yes"
        return warn("recording", f"{text}, which is more than runs keep by themselves", command=command)
    return ok("recording", text if found.whole else f"{text}; too big to be looked through whole in {PATIENCE:g} s")


def _beside(path: Path, found: Health) -> list[Line]:
    if not found.network:
        return []
    text = "it is on a network file system, so it has a rollback journal, and who reads it can keep a run waiting"
    return [info("recording", text, advice="set XDG_STATE_HOME to a folder on a disk of this machine")]


async def left(bench: Bench) -> list[Leftover]:
    """What is wrong with it; what cannot be read may be worth saving, so that is left to a person."""
    broken = [one for one in await recording(bench) if one.mark is Mark.FAIL]
    by_hand = [Leftover(check=one.check, text=one.text, advice=one.advice, command=one.command) for one in broken]
    return by_hand or too_open(recording_file(bench.user))


def too_open(path: Path) -> list[Leftover]:
    """Modes that let others see or change it, and what mends them."""
    sentence = others_may(path) if path.exists() else ""
    if not sentence:
        return []
    target = next(one for one in (path, path.parent) if sentence.startswith(repr(str(one))))
    text = sentence.removeprefix(repr(str(target))).partition(": chmod")[0]

    async def closed() -> str:
        target.chmod(target.stat().st_mode & 0o700)
        return f"{target} is for its owner alone"

    repair = str(command("chmod", "go=", target))
    return [Leftover(check="recording", text=f"{target}{text}", command=repair, mend=closed)]
