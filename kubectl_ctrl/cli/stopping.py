"""What `stop` does: asks the processes of these controllers to end, and waits until they have."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from dataclasses import replace

from kubectl_ctrl.cli import attendance, pages
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.attendance import Attendance, Where
from kubectl_ctrl.cli.command import Given
from kubectl_ctrl.cli.ending import Live, ended
from kubectl_ctrl.cli.grammar import nearest
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import Refused, UsageError
from kubectl_ctrl.render.text import escaped


def run(app: App, given: Given) -> int:
    """The body of the verb."""
    if not 0 < given["timeout"] <= 1e9:
        raise UsageError("Invalid value for --timeout: it must be more than nothing, like 30s or 2m.")
    place = attendance.where(app, given)
    found = attendance.of(app, place)
    if not given.arguments:
        raise UsageError("stop needs a controller.", next_step=_what_runs(found, place))
    _stop(app, given, place, list(dict.fromkeys(_name(word, found) for word in given.arguments)))
    return 0


def _what_runs(found: Sequence[Attendance], place: Where) -> str:
    running = sorted({one.controller for one in found if one.lives})
    return f"{', '.join(running)} can be stopped" if running else f"no controller runs here on {place.text}"


def _name(word: str, found: Sequence[Attendance]) -> str:
    """The controller that a word means: its name, or the file that was started."""
    return next((one.controller for one in found if one.word == pages.whole(word)), word)


def _stop(app: App, given: Given, place: Where, names: Sequence[str]) -> None:
    before = [live for live in attendance.lives(app, place) if not set(names).isdisjoint(live.controllers)]
    for live in before:
        if others := [name for name in live.controllers if name not in names]:
            words = shlex.join([*sorted(names), *others])
            raise Refused(
                f"{live} runs several controllers, and can only end as a whole.",
                next_step=f"kubectl ctrl stop {words} ends all of them",
            )
    already = {live.pid for live in before if live.asked}
    clock = SystemClock()

    def find() -> list[Live]:
        now = attendance.lives(app, place)
        return [replace(live, asked=live.pid in already) for live in now if not set(names).isdisjoint(live.controllers)]

    def note(text: str) -> None:
        """Once they were asked."""
        for name in names:
            _mark(place, name, clock.now())
        app.narrate(escaped(text))

    gone = asyncio.run(ended(find, given["timeout"], clock, note, kill=given["force"]))
    _tell(app, place, names, {name for live in gone for name in live.controllers})


def _there(one: Attendance) -> str:
    return f"--name {one.cluster}" if one.cluster else f"--context {one.context}"


def _mark(place: Where, name: str, now: float) -> None:
    if place.entry is not None and (page := pages.read(log := pages.log_of(place.entry, name))) is not None:
        pages.write(log, replace(page, asked=page.asked or now))


def _tell(app: App, place: Where, names: Sequence[str], gone: set[str]) -> None:
    """What became of each; one that ended before is not expected to run any more."""
    left = sorted({one.controller for one in attendance.of(app, place) if one.lives})
    every = [one for one, _ in attendance.attending(app) if one.lives]
    for name in names:
        noted = place.entry is not None and pages.read(pages.log_of(place.entry, name)) is not None
        if place.entry is not None:
            pages.forget(pages.log_of(place.entry, name))
        if name in gone:
            app.answer(f"{name} stopped")
            continue
        elsewhere = next((one for one in every if one.controller == name and name not in left), None)
        hint = "" if noted else f"{_there(elsewhere)} has it" if elsewhere else nearest(name, left)
        had = f"{name} had ended already" if noted else f"{name} does not run here"
        app.narrate(escaped(f"{had} on {place.text}." + (f" Next: {hint}" if hint else "")))
