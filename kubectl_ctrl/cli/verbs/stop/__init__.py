"""`kubectl ctrl stop`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.one_cluster import NAME
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="stop",
    usage="stop CONTROLLER... [flags]",
    details=(
        "Stops them as Ctrl-C does: running reconciles may finish. Returns when the\n"
        "processes have exited. The cluster and its objects do not change; recordings and\n"
        "logs are kept."
    ),
    examples=(
        ("Stop memcached", "stop memcached"),
        ("Stop two controllers, on a cluster other than the current one", "stop foo memcached --name two"),
        ("Kill it if it has not exited after ten seconds", "stop foo --timeout 10s --force"),
    ),
    flags=(
        Flag("--force", help="Kill processes that have not exited after --timeout."),
        NAME,
        Flag(
            "--timeout",
            value="DURATION",
            type=DURATION,
            default="40s",
            help="How long to wait for the processes to exit. Exit code 124 on timeout; the controllers "
            "continue to shut down.",
        ),
    ),
    body=later("kubectl_ctrl.cli.verbs.stop.main:run"),
    recalls="running",
)
