"""The entry point: finds the verb, runs it, and turns every error into an exit code and at most three lines.

Below an error of kind or kwokctl are also the last lines of its output, which show the reason.
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
# The whole output of a failed kind or kwokctl.
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
    """The output of `kubectl ctrl` without arguments."""
    width = max(len(name) for name in table.names())
    rows = "".join(f"  {entry.name:<{width}}  {entry.summary}\n" for entry in table.VERBS)
    return _HEAD + rows + _FOOT


def run(app: App, words: Sequence[str]) -> int:
    """Run one command line; returns the exit code, or raises the error."""
    name, rest = before_verb(words, GLOBAL_FLAGS, table.names())
    if name in ("", "help"):
        if name == "help" and rest:
            return _print_help(app, table.load(table.find(rest[0])).help(rest[1:]))
        if any(word not in ("-h", "--help", "--help=true") for word in rest):
            raise UsageError("A verb is missing.", next_step=f"the verbs are: {', '.join(table.names())}")
        return _print_help(app, overview())
    verb = table.load(table.find(name))
    given = verb.parse(rest, app.user.environ)
    if given is None:
        return _print_help(app, verb.help(rest))
    app.verbosity = int(given["verbosity"])
    app.color_flag = given.one_of("color", ("auto", "always", "never"))
    return verb.body(app, given)


def _print_help(app: App, text: str) -> int:
    app.answer(verbatim(app.as_called(text).rstrip("\n")))
    return 0


def _verbosity(words: Sequence[str]) -> int:
    """The value of -v, found without the parser: its error may be the one to report."""
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
    except Exception as error:  # noqa: BLE001 - the outermost handler: every error gets an exit code
        if max(app.verbosity, _verbosity(words)) >= TRACEBACK_FROM:
            app.narrate(verbatim(app.hide(traceback.format_exc()).rstrip("\n")))
        return _failed(app, error)


def _failed(app: App, error: Exception) -> int:
    """Print the error; returns its exit code."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    known = error if isinstance(error, CtrlError) else _system_error(error)
    known = known or CtrlError(
        f"This is a bug in kubectl-ctrl: {type(error).__name__}: {error}.",
        next_step="repeat with -v 6 and report the output",
    )
    known.message, known.tried, known.next_step = map(
        app.hide, (known.message, known.tried, app.pin.into(known.next_step))
    )
    output = _program_output(app, known)
    if app.machine:
        from kubectl_ctrl.cli.output.log_lines import error_line

        app.narrate(error_line(known, output="\n".join(output)))
    else:
        # The last lines of the output go below the error. The whole output goes above, to keep the error in view.
        parts = [error_lines(known), *(f"  {escaped(line)}" for line in output)]
        app.narrate(Text("\n".join(parts if app.verbosity < _OUTPUT_FROM else [*parts[1:], parts[0]])))
    return app.general_error if known.exit_code == CtrlError.exit_code else known.exit_code


def _program_output(app: App, error: CtrlError) -> list[str]:
    """The output of a failed kind or kwokctl: its last lines, or with -v 1 all of it."""
    if not isinstance(error, ClusterError | TimedOut):
        return []
    if error.output and app.verbosity >= _OUTPUT_FROM:
        return app.hide(error.output).strip().split("\n")
    return list(map(app.hide, error.last_words))


def _system_error(error: Exception) -> CtrlError | None:
    """An error of the disk, a permission or a limit; None for other errors, which may be bugs."""
    if not isinstance(error, OSError) or not (remedy := files.remedy(error)):
        return None
    what = f"{str(error.filename)!r} cannot be used" if error.filename else "A file cannot be used"
    return CtrlError(f"{what}: {error.strerror}.", next_step=remedy)


if __name__ == "__main__":
    sys.exit(main())
