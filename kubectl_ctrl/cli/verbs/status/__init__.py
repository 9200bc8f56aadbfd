"""`kubectl ctrl status`: its flags and its help. What it does is in `reporting`."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LISTED, UTC
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.runs.local import NAME

VERB = Verb(
    name="status",
    usage="status [flags]",
    summary="List the controllers that run here, also in the background.",
    details=(
        "Processes of this machine that run controllers on the cluster that is meant, and\n"
        "those that up --detach has started there and that are gone: STATE is starting,\n"
        "running, draining (asked to stop), stopped (by a debugger), ended, failed, or\n"
        "dead, as after kill -9 or a restart of the machine. RUN is what trace calls it.\n"
        "\n"
        "No cluster is asked for anything."
    ),
    examples=(
        ("What runs here on this cluster", "status"),
        ("On all clusters, with contexts and logs", "status -A -o wide"),
        ("Whether memcached runs, for a script", "status -o jsonpath='{.controllers[?(@.name==\"memcached\")].state}'"),
    ),
    flags=(
        Flag("-A", "--all-clusters", help="Of all clusters, not only of the one that is meant."),
        NAME,
        *LISTED,
        UTC,
    ),
    body=later("kubectl_ctrl.cli.verbs.status.main:run"),
)
