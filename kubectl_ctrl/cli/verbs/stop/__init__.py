"""`kubectl ctrl stop`: its flags and its help. What it does is in `stopping`."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.runs.local import NAME

VERB = Verb(
    name="stop",
    usage="stop CONTROLLER... [flags]",
    summary="End controllers that run here, also those of another terminal.",
    details=(
        "As Ctrl-C does it: reconciles that are under way may finish. Returns when the\n"
        "processes have ended. What is in the cluster stays as it is, and so does the\n"
        "cluster; what is recorded and what logs shows can still be read."
    ),
    examples=(
        ("End memcached", "stop memcached"),
        ("Two of them, on a cluster that is not the current context's", "stop foo memcached --name two"),
        ("Kill it when it has not ended after ten seconds", "stop foo --timeout 10s --force"),
    ),
    flags=(
        Flag("--force", help="Kill what has not ended when --timeout has passed."),
        NAME,
        Flag(
            "--timeout",
            value="DURATION",
            type=DURATION,
            default="40s",
            help="How long to wait for the end. Code 124 when the time runs out, and the controllers go on ending.",
        ),
    ),
    body=later("kubectl_ctrl.cli.verbs.stop.main:run"),
    recalls="running",
)
