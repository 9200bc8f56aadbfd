"""`kubectl ctrl queue`: its flags and its help. What it does is in `queueing`."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LOOKING_BACK, UTC
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="queue",
    usage="queue [CONTROLLER] [-w] [flags]",
    summary="Show what waits, runs and backs off in controllers that run here.",
    details=(
        "For each controller that a process of this machine runs: whether it leads, has\n"
        "synced and was heard of lately, how many of its workers are busy, and what its\n"
        "queue holds: requests that run, those that are ready, those that back off (STEP\n"
        "counts the failures in a row, NEXT is the next try) and those on a timer.\n"
        "\n"
        "It reads the recording, never the cluster, so it also tells how the queue of a\n"
        "process stood that was killed: marked with the time when it was last seen."
    ),
    examples=(
        ("Show the queues of all controllers that run", "queue"),
        ("Watch the queue of one", "queue foo -w"),
        ("With the number of causes that each has, and more of the namespaces", "queue -o wide"),
        ("How many requests are ready, for a script", "queue foo -o json | jq '.controllers[0].depth.ready'"),
    ),
    flags=(
        *LOOKING_BACK,
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="text",
            choices=("text", "wide", "json", "yaml"),
            help="text, wide, json or yaml; with -w, json is one document for each line.",
        ),
        UTC,
        Flag("-w", "--watch", help="Go on showing them as they change, until Ctrl-C."),
    ),
    body=later("kubectl_ctrl.cli.verbs.queue.main:run"),
    completes=bundled.candidates,
    recalls="controllers",
)
