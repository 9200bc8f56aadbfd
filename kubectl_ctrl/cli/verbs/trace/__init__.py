"""`kubectl ctrl trace`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

import atexit
import gc

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.flags import CONTROLLER, LIVE, LOOKING_BACK, OFFLINE, UID, UTC
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine, Verb, later


def _run(app: App, given: ParsedCommandLine) -> int:
    # Everything that is loaded is kept until the process exits, so garbage collection would only cost time. With -w the
    # process may run for hours.
    if not given["watch"]:
        gc.disable()
        atexit.register(gc.freeze)  # skips the last collection at exit, too
    return later("kubectl_ctrl.cli.verbs.trace.main:run")(app, given)


VERB = Verb(
    name="trace",
    usage="trace TYPE[/NAME] [N] [flags]",
    details=(
        "Each row is one reconcile. WHY shows the trigger, the fields that changed and\n"
        "who changed them ('by <unknown>' if the server does not record it). CALLS\n"
        "counts reads and writes. Below the row are further causes that were merged into\n"
        "the reconcile, and every write with the server's answer and its changes.\n\n"
        "With N (or RUN-N alone), one reconcile is shown in full, with its time to scale.\n"
        "Without NAME, the objects of the type are listed in a table. For an object that\n"
        "no controller reconciles, such as deploy/web, trace shows the reconciles that it\n"
        "triggered and those that wrote it.\n\n"
        "trace reads the recording that run writes, so it also works when the controller,\n"
        "the object and the cluster are gone. It queries the cluster only if nothing is\n"
        "recorded, or with --live, for at most two seconds."
    ),
    examples=(
        ("Show what happened to an object", "trace foo/web"),
        ("Follow it until Ctrl-C", "trace foo/web -w"),
        ("Show the last five, with every call, read and Audit-ID", "trace foo/web --last 5 --calls"),
        ("Show what each cause and each write changed, as a diff", "trace foo/web --since 10m --diff"),
        ("Show one reconcile in full", "trace foo/web 12"),
        ("List all objects of a type, in all namespaces", "trace foo -A"),
        ("For programs: one JSON document, or one line for each reconcile", "trace foo/web -o jsonl"),
        ("Write a web page with a timeline", "trace foo/web -o html > trace.html"),
    ),
    flags=(
        Flag("-A", "--all-namespaces", help="With a type only: list the objects of all namespaces."),
        Flag("--calls", help="Show every call with its Audit-ID and its echo, the reads, and the events."),
        CONTROLLER,
        Flag("--diff", help="Show what each cause and each write changed as a YAML diff; secrets are hidden."),
        *LOOKING_BACK,
        Flag("--id", value="N", default="", help="Show one reconcile in full: its number, or RUN-N."),
        Flag(
            "--last",
            value="N",
            type=int,
            default=None,
            help="Show the last N reconciles; 0 shows all. Default: 20 on a terminal, otherwise all.",
        ),
        LIVE,
        OFFLINE,
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="text",
            choices=("text", "wide", "json", "jsonl", "yaml", "dot", "otlp", "perfetto", "html"),
            help="Output format: text, wide, json, jsonl, yaml, dot, otlp, perfetto or html. Redirect the "
            "last three to a file.",
        ),
        Flag("--raw", help="Show the reconciles as recorded: JSON, one per line."),
        Flag(
            "--since",
            value="WHEN",
            default="",
            help="Show reconciles that started after this: an age (90s, 1h30m), a time of today (10:04), "
            "or a date or time such as 2026-01-31T10:04:00Z.",
        ),
        Flag("--tree", help="Also show the objects that it owns, with READY, REASON and AGE."),
        UID,
        UTC,
        Flag("-w", "--watch", help="Show new reconciles as they run, until Ctrl-C."),
    ),
    body=_run,
    recalls="looked at",
)
