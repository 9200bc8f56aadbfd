"""`kubectl ctrl list`: its flags and its help. What it does is in `listing`."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LISTED
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="list",
    usage="list [flags]",
    summary="List the bundled controllers, and where each is installed and run.",
    details=(
        "INSTALLED and RUNNING are about the cluster of the current context: whether its\n"
        "CRD is served and its RBAC is there, and who runs it: a process of this machine,\n"
        "a Deployment in the cluster, or whoever holds its Lease. A question mark stands\n"
        "for what could not be seen within two seconds."
    ),
    examples=(
        ("List the controllers", "list"),
        ("With the rights that each needs, and a line on what it is for", "list -o wide"),
        ("Their names alone, for a script; no cluster is asked", "list -o name"),
        ("Everything that is known, about another cluster", "list -o json --context staging"),
        (
            "Where each is installed, in columns of your choice",
            "list -o custom-columns=NAME:.name,INSTALLED:.installed",
        ),
    ),
    flags=LISTED,
    body=later("kubectl_ctrl.cli.verbs.list.main:run"),
)
