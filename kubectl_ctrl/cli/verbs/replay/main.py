"""`replay`: runs a recorded attempt again with today's code, and prints the differences."""

from __future__ import annotations

import asyncio
from contextlib import redirect_stdout
from pathlib import Path

from kubectl_ctrl import files
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.answers import document, style_of
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.cli.parsing.query import query_of
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import ControllerError, NotRecorded, RecordingError, UsageError
from kubectl_ctrl.loader import sources
from kubectl_ctrl.loader.code_errors import shown
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.render.replay import replay_json, replay_lines
from kubectl_ctrl.replay.casefile import ReplayCase, case_of, dumps, loads
from kubectl_ctrl.replay.deviations import ReplayedAttempt
from kubectl_ctrl.replay.execution import blessed, replay, why_not
from kubectl_ctrl.runs.liveness import opened
from kubectl_ctrl.story import lookup
from kubectl_ctrl.text import Text
from kubectl_ctrl.value import replace

_DIFFERS = 9
_LARGEST = 64 * 2**20  # far above the size of any attempt


def run(app: App, given: ParsedCommandLine) -> int:
    app.general_error = 2
    form = given.one_of("output", ("", "text", "json", "yaml"))
    if len(given.arguments) != 1:
        raise UsageError("replay takes one attempt or one file.", next_step="for instance: kubectl ctrl replay r7f3-12")
    (word,) = given.arguments
    recorded = lookup.is_attempt(word)
    if recorded and given["bless"]:
        raise UsageError(
            "--bless changes the expectation of a file; recordings never change.",
            next_step=f"{ctrl('record', 'export', word)} > case.json, then replay case.json --code CONTROLLER --bless",
        )
    case = _from_recording(app, given, word) if recorded else _from_file(Path(word))
    own = recorded and not given["from"]
    if why := why_not(case.attempt):  # before loading the code, which may fail
        raise NotRecorded(f"{word} cannot be replayed: {why}.", next_step=_instead(case, recorded))
    sourced = _code(case, given["code"] or (_own(case) if own else _bundled(given, case)))
    # The output of the code is not the result of this verb.
    with logging_to(app.narrate, form="text", verbosity=app.verbosity), redirect_stdout(app.err):
        replayed = asyncio.run(replay(case, sourced.spec, clock=SystemClock(), timeout=given["timeout"] or _FOREVER))
    code = given["code"] or (case.controller if sourced.word in BUNDLED else shown(sourced.source.main.file))
    _show(app, given, replayed, form, code=code)
    if replayed.same:
        return 0
    if given["bless"] and not replayed.unknown:
        _replace(Path(word), dumps(blessed(replayed)))
        app.narrate(f"{word} now expects what {code} does.")
        return 0
    app.narrate(f"next: {_next(given, replayed, recorded)}")
    return _DIFFERS


def _next(given: ParsedCommandLine, replayed: ReplayedAttempt, recorded: bool) -> str:
    if replayed.unknown:
        return "run today's code on a cluster with that object, and replay the new recording"
    if recorded:
        return f"{ctrl('record', 'export', given.arguments[0])} > case.json keeps it as a test"
    return f"{given.again('replay', '--bless')}, if the new result is right"


_FOREVER = 10.0 * 365 * 86400


def _instead(case: ReplayCase, recorded: bool) -> str:
    request = case.attempt.request
    kind = case.primaries[0].kind.lower() if case.primaries else "TYPE"
    return (
        str(ctrl("trace", f"{kind}/{request.name}", "--id", case.attempt.id)) if recorded else "export another attempt"
    )


def _from_recording(app: App, given: ParsedCommandLine, word: str) -> ReplayCase:
    """RUN-N identifies the attempt, so neither a cluster nor a context is needed."""
    if "-" not in word:
        raise UsageError(f"The run of attempt {word} is missing.", next_step="write RUN-N, like r7f3-12")
    if given["recorded_cluster"]:
        meant = lookup.open_recording(query_of(app, given))
        recording, cluster = meant.recording, meant.cluster.key
    else:
        recording, cluster = opened(query_of(app, given).file, SystemClock().now()), ""
    with recording:
        attempt = recording.replayable(word, cluster=cluster)
        return case_of(attempt, recording.run(attempt.run))


def _from_file(file: Path) -> ReplayCase:
    file = file.expanduser()
    try:
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise RecordingError(f"{file} is a device or a pipe, not a file.", next_step="use a file")
        if file.stat().st_size > _LARGEST:
            raise RecordingError(f"{file} is too large for a case file.", next_step="use a file from record export")
        text = file.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"{str(file)!r} is neither an attempt nor a file.", next_step="write RUN-N, like r7f3-12, or a file's path"
        ) from None
    except OSError as error:
        raise RecordingError(f"Cannot read {file}: {error.strerror}.", next_step="check its path") from None
    return loads(text, str(file))


def _code(case: ReplayCase, named: str) -> SourcedController:
    """Today's code of the controller."""
    (sourced,) = sources.resolve([named], dict(case.settings))
    if sourced.spec.name != case.controller:
        raise ControllerError(
            f"{named} is controller {sourced.spec.name!r}, and {case.attempt.id} is of {case.controller!r}.",
            next_step="select the code with --code",
        )
    return sourced


def _own(case: ReplayCase) -> str:
    """The code named in the user's own recording."""
    if _is_bundled(case):
        return case.controller
    if there := _named(case):
        return there
    raise UsageError(
        f"The code of controller {case.controller!r} no longer exists: {case.code or case.word or '?'}.",
        next_step="select the code: --code ./mine.py",
    )


def _bundled(given: ParsedCommandLine, case: ReplayCase) -> str:
    """The bundled controller of a file. Loading code runs it, so a file from somebody else must not name other code."""
    if _is_bundled(case):
        return case.controller
    there = _named(case)
    again = given.again("replay", f"--code={there or './mine.py'}")
    raise UsageError(
        f"A file must not select the code that runs, and controller {case.controller!r} is not bundled.",
        tried=f"the file names {case.code or case.word or 'none'}",
        next_step=f"if you trust that code: {again}" if there else f"select the code: {again}",
    )


def _is_bundled(case: ReplayCase) -> bool:
    return not case.code and case.controller in BUNDLED


def _named(case: ReplayCase) -> str:
    """The existing file of the recorded code, with the name after the colon if one was given; "" if it is gone."""
    word, colon, attribute = case.word.rpartition(":")
    if not (colon and attribute.isidentifier()):
        word, attribute = case.word, ""
    files = [Path(one).resolve() for one in (case.code, word) if one and Path(one).exists()]
    if not files:
        return ""
    return f"{files[0]}:{attribute}" if attribute else str(files[0])


def _show(app: App, given: ParsedCommandLine, replayed: ReplayedAttempt, form: str, *, code: str) -> None:
    if form in ("json", "yaml"):
        app.answer(document(replay_json(replayed, code=code), form))
    else:
        style = replace(style_of(app, given), full_times=True)
        app.answer_all(map(Text, replay_lines(replayed, style, code=code)))


def _replace(file: Path, text: str) -> None:
    try:
        files.replace(file.expanduser().resolve(), text.encode(), keep=True)
    except OSError as error:
        raise RecordingError(f"Cannot write {file}: {error.strerror}.", next_step="the file is unchanged") from None
