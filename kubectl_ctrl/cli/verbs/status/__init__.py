"""`kubectl ctrl status`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LISTED, UTC
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.one_cluster import NAME
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="status",
    usage="status [flags]",
    details=(
        "Lists the processes on this machine that run controllers on the selected\n"
        "cluster, and those that up --detach started there and that no longer run. STATE\n"
        "is starting, running, draining (asked to stop), stopped (by a debugger), ended,\n"
        "failed, or dead (for example after kill -9 or a reboot). RUN is the id of the\n"
        "run, as in trace.\n\n"
        "The cluster is not queried."
    ),
    examples=(
        ("List the controllers on this cluster", "status"),
        ("List those on all clusters, with contexts and logs", "status -A -o wide"),
        (
            "In a script: print the state of memcached",
            "status -o jsonpath='{.controllers[?(@.name==\"memcached\")].state}'",
        ),
    ),
    flags=(Flag("-A", "--all-clusters", help="List the controllers on all clusters."), NAME, *LISTED, UTC),
    body=later("kubectl_ctrl.cli.verbs.status.main:run"),
)
