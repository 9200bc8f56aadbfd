"""`kubectl ctrl version`: the version of the program."""

from __future__ import annotations

import json
import platform

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine, Verb
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.text import verbatim
from kubectl_ctrl.version import VERSION


def _version(app: App, given: ParsedCommandLine) -> int:
    if given.arguments:
        raise UsageError("version takes no arguments.", next_step=VERB.hint)
    facts = {"version": VERSION, "python": platform.python_version(), "platform": platform.platform(terse=True)}
    match given["output"]:
        case "":
            app.answer(f"kubectl-ctrl {VERSION} (python {facts['python']}, {facts['platform']})")
        case "json":
            app.answer(verbatim(json.dumps(facts, indent=2)))
        case "yaml":
            app.answer_all(f"{name}: {value}" for name, value in facts.items())
        case other:
            raise UsageError(f"Invalid value for --output: {other!r}.", next_step="use json or yaml")
    return 0


VERB = Verb(
    name="version",
    usage="version [-o json|yaml]",
    examples=(
        ("Print the version", "version"),
        ("Print JSON", "version -o json"),
        ("Print only the number", "version | cut -d ' ' -f 2"),
    ),
    flags=(
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="",
            choices=("json", "yaml"),
            help="Output format: json or yaml; one line of text by default.",
        ),
    ),
    body=_version,
    cluster=False,
)
