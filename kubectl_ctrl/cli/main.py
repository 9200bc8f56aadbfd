"""The entry point: finds the verb, runs it, and turns every ending into an exit code and three lines at most.

Below the three stand the last words of a program that failed to make a cluster, where they are needed to know why.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from kubectl_ctrl import files
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.flags import GLOBAL_FLAGS
from kubectl_ctrl.cli.parsing.grammar import before_verb
from kubectl_ctrl.cli.verbs import table
from kubectl_ctrl.errors import ClusterError, CtrlError, TimedOut, UsageError
from kubectl_ctrl.render.errors import error_lines
from kubectl_ctrl.text import Text, escaped, verbatim

TRACEBACK_FROM = 6
# All that a program said that made or removed a cluster, and failed.
_OUTPUT_FROM = 1

_HEAD = """\
kubectl ctrl runs Kubernetes controllers from your laptop and records why each
reconcile ran.

Usage:
  kubectl ctrl VERB [arguments] [flags]

Verbs:
"""
_FOOT = """
Use "kubectl ctrl VERB --help" for more about a verb.
Use "kubectl ctrl options" for the flags that all verbs take.
"""


def overview() -> str:
    """What `kubectl ctrl` alone prints."""
    width = max(len(name) for name in table.names())
    rows = "".join(f"  {entry.name:<{width}}  {entry.summary}\n" for entry in table.VERBS)
    return _HEAD + rows + _FOOT


def run(app: App, words: Sequence[str]) -> int:
    """One command line, from words to exit code; raises what went wrong."""
    name, rest = before_verb(words, GLOBAL_FLAGS, table.names())
    if name in ("", "help"):
        if name == "help" and rest:
            return _explained(app, table.load(table.find(rest[0])).help(rest[1:]))
        return _without_verb(app, rest)
    verb = table.load(table.find(name))
    given = verb.parse(rest, app.user.environ)
    if given is None:
        return _explained(app, verb.help(rest))
    app.verbosity = int(given["verbosity"])
    app.color_flag = _color(given["color"])
    return verb.body(app, given)


def _without_verb(app: App, rest: Sequence[str]) -> int:
    if any(word not in ("-h", "--help", "--help=true") for word in rest):
        raise UsageError("A verb is missing.", next_step=f"the verbs are: {', '.join(table.names())}")
    return _explained(app, overview())


def _explained(app: App, text: str) -> int:
    app.answer(verbatim(app.as_called(text).rstrip("\n")))
    return 0


def _color(word: str) -> str:
    if word not in ("auto", "always", "never"):
        raise UsageError(f"Invalid value for --color: {word!r}.", next_step="use auto, always or never")
    return word


def _verbosity(words: Sequence[str]) -> int:
    """How much was asked to be told, read without the parser: it may be what failed."""
    for at, word in enumerate(words):
        for form in ("--v=", "-v=", "-v"):
            if word.startswith(form) or word == "--v":
                text = word[len(form) :] or (words[at + 1] if at + 1 < len(words) else "")
                return int(text) if text.isdigit() else 0
    return 0


def main(argv: Sequence[str] | None = None, app: App | None = None) -> int:
    """Run the process; the return value is its exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["__complete"]:  # cobra's word for it
        from kubectl_ctrl.cli.completion import main as complete

        return complete.main(words[1:])
    app = app or App.of_this_process()
    try:
        return run(app, words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        app.nobody_reads()
        return 0
    except Exception as error:  # noqa: BLE001 - the last border: nobody is shown a traceback who did not ask for one
        if max(app.verbosity, _verbosity(words)) >= TRACEBACK_FROM:
            app.narrate(verbatim(app.hide(traceback.format_exc()).rstrip("\n")))
        return _failed(app, error)


def _failed(app: App, error: Exception) -> int:
    """Say what went wrong, once and shortly; the exit code."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    told = error if isinstance(error, CtrlError) else _of_the_system(error) or _bug(error)
    told.message, told.tried, told.next_step = map(app.hide, (told.message, told.tried, app.pin.into(told.next_step)))
    said = _said(app, told)
    if app.machine:
        from kubectl_ctrl.cli.output.log_lines import error_line

        app.narrate(error_line(told, output="\n".join(said)))
    else:
        # The end of what was said stands below the error; all of it would drive the error off the screen.
        parts = [error_lines(told), *(f"  {escaped(line)}" for line in said)]
        app.narrate(Text("\n".join(parts if app.verbosity < _OUTPUT_FROM else [*parts[1:], parts[0]])))
    return app.general_error if told.exit_code == CtrlError.exit_code else told.exit_code


def _said(app: App, error: CtrlError) -> list[str]:
    """Lines of the program behind a cluster that failed: its last words, or all of them where that was asked for."""
    if not isinstance(error, ClusterError | TimedOut):
        return []
    if error.output and app.verbosity >= _OUTPUT_FROM:
        return app.hide(error.output).strip().split("\n")
    return list(map(app.hide, error.last_words))


def _of_the_system(error: Exception) -> CtrlError | None:
    """A disk, a permission or a limit that no caller expected; None for what may be a fault of ours."""
    if not isinstance(error, OSError) or not (remedy := files.remedy(error)):
        return None
    what = f"{str(error.filename)!r} cannot be used" if error.filename else "A file cannot be used"
    return CtrlError(f"{what}: {error.strerror}.", next_step=remedy)


def _bug(error: Exception) -> CtrlError:
    return CtrlError(
        f"This is a bug in kubectl-ctrl: {type(error).__name__}: {error}.",
        next_step="repeat with -v 6 and report the output",
    )


if __name__ == "__main__":
    sys.exit(main())
