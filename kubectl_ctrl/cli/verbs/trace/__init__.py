"""`kubectl ctrl trace`: its flags and its help. What it does is in `tracing`."""

from __future__ import annotations

import atexit
import gc

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.flags import CONTROLLER, LIVE, LOOKING_BACK, OFFLINE, UID, UTC
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Given, Verb, later


def _run(app: App, given: Given) -> int:
    # Modules, and thousands of values that are kept as long as the process: looking for garbage among them finds none.
    # What is followed for hours makes some.
    if not given["watch"]:
        gc.disable()
        atexit.register(gc.freeze)  # also from the last look, when the process ends
    return later("kubectl_ctrl.cli.verbs.trace.main:run")(app, given)


VERB = Verb(
    name="trace",
    usage="trace TYPE[/NAME] [N] [flags]",
    summary="Show every reconcile of an object: why it ran, and what it did.",
    details=(
        "Each row is one reconcile. WHY names what woke it, the fields that changed and\n"
        "who changed them ('by ?' where the server keeps no note of it); CALLS counts its\n"
        "reads and writes; below it stand further causes that were merged into it, and\n"
        "every write with the server's answer and what it changed.\n"
        "\n"
        "With N (or RUN-N alone) it is one reconcile in full, with its time to scale.\n"
        "Without NAME it is a table of all objects of the type. An object that no\n"
        "controller reconciles itself, as deploy/web, shows the reconciles that it caused\n"
        "and those that wrote it.\n"
        "\n"
        "It answers from the recording that run makes, also when the controller, the\n"
        "object and the cluster are gone. Only where nothing is recorded, or with --live,\n"
        "is the cluster asked, for two seconds at most."
    ),
    examples=(
        ("What happened to an object", "trace foo/web"),
        ("Follow it while it happens, until Ctrl-C", "trace foo/web -w"),
        ("The last five, with every call and read and its Audit-ID", "trace foo/web --last 5 --calls"),
        ("What each cause and each write changed, as a diff", "trace foo/web --since 10m --diff"),
        ("One reconcile in full", "trace foo/web 12"),
        ("All objects of a type, in all namespaces", "trace foo -A"),
        ("For programs: one JSON document, or a line for each reconcile", "trace foo/web -o jsonl"),
        ("A page with a timeline, to look at or to send on", "trace foo/web -o html > trace.html"),
    ),
    flags=(
        Flag("-A", "--all-namespaces", help="With a type alone: the objects of all namespaces."),
        Flag("--calls", help="Show every call with its Audit-ID and its echo, what was read, and the events."),
        CONTROLLER,
        Flag("--diff", help="Show what each cause and each write changed as a diff of YAML; secrets are hidden."),
        *LOOKING_BACK,
        Flag("--id", value="N", default="", help="Show one reconcile in full: its number, or RUN-N."),
        Flag(
            "--last",
            value="N",
            type=int,
            default=None,
            help="Show the last N reconciles; 20 on a terminal when not given, otherwise all. 0 is all.",
        ),
        LIVE,
        OFFLINE,
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="text",
            choices=("text", "wide", "json", "jsonl", "yaml", "dot", "otlp", "perfetto", "html"),
            help="text, wide, json, jsonl, yaml, dot, otlp, perfetto or html; the last three belong in a file.",
        ),
        Flag("--raw", help="Show the reconciles as they were recorded: JSON, one to a line."),
        Flag(
            "--since",
            value="WHEN",
            default="",
            help="Show what began after that: an age (90s, 1h30m), a time of today (10:04), or a date or time as in "
            "2026-01-31T10:04:00Z.",
        ),
        Flag("--tree", help="Show the objects that it owns too, with READY, REASON and AGE."),
        UID,
        UTC,
        Flag("-w", "--watch", help="Go on showing reconciles as they run, until Ctrl-C."),
    ),
    body=_run,
    recalls="looked at",
)
