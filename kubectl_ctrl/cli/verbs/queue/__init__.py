"""`kubectl ctrl queue`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LOOKING_BACK, UTC
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="queue",
    usage="queue [CONTROLLER] [-w] [flags]",
    details=(
        "For each controller that runs on this machine: whether it is the leader, has\n"
        "synced and reported recently; how many of its workers are busy; and the requests\n"
        "in its queue: running, ready, backing off (STEP counts consecutive failures,\n"
        "NEXT is the next retry) or waiting for a timer.\n\n"
        "It reads the recording, never the cluster. It also shows the last known queue of\n"
        "a process that was killed, marked with the time when it was last seen."
    ),
    examples=(
        ("Show the queues of all running controllers", "queue"),
        ("Watch the queue of one controller", "queue foo -w"),
        ("Add the number of causes of each request, and more namespaces", "queue -o wide"),
        ("In a script: count the requests that are ready", "queue foo -o json | jq '.controllers[0].depth.ready'"),
    ),
    flags=(
        *LOOKING_BACK,
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="text",
            choices=("text", "wide", "json", "yaml"),
            help="Output format: text, wide, json or yaml; with -w, json is one document per line.",
        ),
        UTC,
        Flag("-w", "--watch", help="Show changes until Ctrl-C."),
    ),
    body=later("kubectl_ctrl.cli.verbs.queue.main:run"),
    completes=bundled.candidates,
    recalls="controllers",
)
