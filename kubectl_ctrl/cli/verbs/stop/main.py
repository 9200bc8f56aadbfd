"""`stop`: asks the processes of controllers to stop, and waits for their exit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.one_cluster import where
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import ControllerError, CtrlError, Refused, UsageError
from kubectl_ctrl.history.hints import Hints
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.loader.sources import resolve
from kubectl_ctrl.model.suggestions import Command, ctrl
from kubectl_ctrl.runs import background_notes, local, runners
from kubectl_ctrl.runs.local import LocalController, SelectedCluster
from kubectl_ctrl.runs.termination import LiveProcess, ended
from kubectl_ctrl.text import nearest
from kubectl_ctrl.value import replace


def run(app: App, given: ParsedCommandLine) -> int:
    if not 0 < given["timeout"] <= 1e9:
        raise UsageError("Invalid value for --timeout: it must be positive.", next_step="for instance: --timeout 30s")
    place = where(app, given)
    here, elsewhere = local.split_by_cluster(app.user, place)
    if not given.arguments:
        running = ", ".join(sorted({one.controller for one in here if one.lives}))
        choice = f"choose one of: {running}" if running else "kubectl ctrl status -A shows what runs where"
        raise UsageError("stop needs a controller.", next_step=choice)
    names = list(dict.fromkeys(_name(word, [*here, *elsewhere]) for word in given.arguments))
    _check(app, place, names, here, elsewhere)
    _stop(app, given, place, names)
    return 0


def _name(word: str, found: Sequence[LocalController]) -> str:
    """The controller of an argument: its name, or the file that was started."""
    whole = background_notes.absolute(word)
    if noted := next((one.controller for one in found if one.word == whole), ""):
        return noted
    if not background_notes.is_path(word):
        return word
    try:
        return resolve([word])[0].spec.name
    except ControllerError:  # its code is broken since it was started
        return Path(whole.partition(":")[0]).stem


def _check(
    app: App,
    place: SelectedCluster,
    names: Sequence[str],
    here: Sequence[LocalController],
    elsewhere: Sequence[LocalController],
) -> None:
    """An error for an unknown controller, or one that runs elsewhere if no cluster was named."""
    known = {one.controller for one in here if not one.unreadable}
    unknown = {one.controller: one.unreadable for one in here if one.unreadable}
    for name in names:
        ways = _ways(name, place, elsewhere)
        if name in known:
            continue
        if ways and not place.named:
            raise Refused(
                f"{name} does not run here on {place.text}, but on {' and '.join(ways.values())}.",
                next_step=", or ".join(str(ctrl("stop", name, flag)) for flag in ways),
            )
        if name in unknown:
            raise Refused(
                f"{name} runs on this machine, but its lock file cannot be read: {unknown[name].unreadable}.",
                next_step=unknown[name].remedy,
            )
        others = {one.controller for one in elsewhere} | _ever(app)
        if name not in others:
            there = {*known, *others}
            listed = f"there is: {', '.join(sorted(there))}"
            raise UsageError(f"There is no controller {name!r}.", next_step=nearest(name, there) or listed)


def _ways(name: str, place: SelectedCluster, elsewhere: Sequence[LocalController]) -> dict[Command, str]:
    """The other clusters on which it runs, by the flag that selects them."""
    found = {one.flag: one.place for one in elsewhere if one.controller == name and one.lives}
    return {flag: text for flag, text in found.items() if flag != place.flag}


def _ever(app: App) -> set[str]:
    """All bundled, logged and recorded controllers. For any other name, `stop` must not report that it stopped."""
    logged = {name for entry in app.registry.entries() for name in background_notes.logged(entry)}
    try:
        with Hints(recording_file(app.user)) as hints:
            return {*BUNDLED, *logged, *(name for one in hints.runs() for name in one.controllers)}
    except CtrlError:
        return {*BUNDLED, *logged}


def _stop(app: App, given: ParsedCommandLine, place: SelectedCluster, names: Sequence[str]) -> None:
    before = [live for live in local.lives(app.user, place) if not set(names).isdisjoint(live.controllers)]
    for live in before:
        if others := [name for name in live.controllers if name not in names]:
            whole = replace(given, arguments=(*sorted(names), *others))
            raise Refused(
                f"{live} runs several controllers, which can only be stopped together.",
                next_step=f"{whole.again('stop')} stops all of them",
            )
    already = {live.pid for live in before if live.asked}
    clock = SystemClock()

    def find() -> list[LiveProcess]:
        now = local.lives(app.user, place)
        return [replace(live, asked=live.pid in already) for live in now if not set(names).isdisjoint(live.controllers)]

    def note(text: str) -> None:
        _mark(app, place, names, clock.now())
        app.narrate(text)

    gone = asyncio.run(ended(find, given["timeout"], clock, note, kill=given["force"]))
    _report(app, place, names, {name for live in gone for name in live.controllers})


def _mark(app: App, place: SelectedCluster, names: Sequence[str], now: float) -> None:
    """Note that they were asked to stop: a second signal would cancel their running reconciles."""
    if place.entry is not None:
        for log in (background_notes.log_of(place.entry, name) for name in names):
            if (noted := background_notes.read(log)) is not None:
                background_notes.write(log, replace(noted, asked=noted.asked or now))
    for runner in runners.runners(app.user.state):
        if place.has(runner) and runner.controller in names:
            runners.note_asked(app.user.state, runner.holder)


def _report(app: App, place: SelectedCluster, names: Sequence[str], gone: set[str]) -> None:
    """Print the result for each, and delete its note, so that `status` no longer lists it."""
    _, elsewhere = local.split_by_cluster(app.user, place)
    for name in names:
        noted = (
            place.entry is not None and background_notes.read(background_notes.log_of(place.entry, name)) is not None
        )
        if place.entry is not None:
            background_notes.forget(background_notes.log_of(place.entry, name))
        if name in gone:
            app.answer(f"{name} stopped")
            continue
        result = f"{name} had already exited" if noted else f"{name} does not run here"
        ways = {} if noted else _ways(name, place, elsewhere)
        but = f", but on {' and '.join(ways.values())}: add {' or '.join(map(str, ways))}" if ways else ""
        app.narrate(f"{result} on {place.text}{but or '.'}")
