"""`kubectl ctrl list`: its flags and its help. What it does is in `listing`."""

from __future__ import annotations

from kubectl_ctrl.cli.command import Verb, later
from kubectl_ctrl.cli.grammar import Flag

VERB = Verb(
    name="list",
    usage="list [-o wide|name|json|yaml] [flags]",
    summary="List the bundled controllers, and where they are installed and run.",
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
    ),
    flags=(
        Flag("-o", "--output", value="FORMAT", default="", help="wide, name, json or yaml; a table when not given."),
    ),
    body=later("kubectl_ctrl.cli.listing:run"),
)
