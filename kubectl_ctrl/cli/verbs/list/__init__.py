"""`kubectl ctrl list`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LISTED
from kubectl_ctrl.cli.parsing.verb import Verb, later

VERB = Verb(
    name="list",
    usage="list [flags]",
    details=(
        "INSTALLED and RUNNING describe the cluster of the current context: whether the\n"
        "CRD is served and the RBAC exists, and who runs the controller: a process on\n"
        "this machine, a Deployment in the cluster, or the holder of its Lease. A\n"
        "question mark means unknown: the cluster is queried for two seconds at most."
    ),
    examples=(
        ("List the controllers", "list"),
        ("Add the rights and the purpose of each controller", "list -o wide"),
        ("In a script: only the names; the cluster is not queried", "list -o name"),
        ("Print all details, for another cluster", "list -o json --context staging"),
        ("Print columns of your choice", "list -o custom-columns=NAME:.name,INSTALLED:.installed"),
    ),
    flags=LISTED,
    body=later("kubectl_ctrl.cli.verbs.list.main:run"),
)
