"""`kubectl ctrl rbac`: its flags and its help. What it does is in `granting`."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LOOKING_BACK, UTC
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="rbac",
    usage="rbac CONTROLLER [--from-trace|--missing|--unused] [flags]",
    summary="Print the rights that a controller has, used, lacked, never used.",
    details=(
        "Alone it prints what the controller's rbac.yaml grants. --from-trace prints the\n"
        "least roles that cover what was recorded of it: the lists and watches of its\n"
        "caches, every call of its reconciles, dry runs too, its events and its Lease.\n"
        "\n"
        "--missing prints what was refused and is still lacking, bound to the user or\n"
        "ServiceAccount that was refused; and what it did with your rights that its\n"
        "rbac.yaml does not grant, bound to its own ServiceAccount. kubectl apply takes\n"
        "it as it is, and it only ever adds rights. --unused prints what rbac.yaml grants\n"
        "and no recorded run has needed: look at it before you believe it, since a rare\n"
        "branch may not have been reached.\n"
        "\n"
        "It reads the recording and never the cluster. Every run of the controller on\n"
        "the cluster that is meant counts, on this machine or from a file (--from)."
    ),
    examples=(
        ("What foo's rbac.yaml grants", "rbac foo"),
        ("The least that covers what foo did, to be kept as rbac.yaml", "rbac foo --from-trace > rbac.yaml"),
        ("Grant what was refused", "rbac memcached --missing -o yaml | kubectl apply -f -"),
        ("What could be taken away", "rbac ./mine.py --unused"),
    ),
    flags=(
        *LOOKING_BACK,
        Flag("--from-trace", help="Print the least roles that cover what was recorded."),
        Flag("--missing", help="Print what was refused, or used and not granted, with its bindings."),
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="",
            choices=("text", "json", "yaml"),
            help="yaml, json or text; when not given, text for --unused and yaml for the rest.",
        ),
        Flag("--unused", help="Print what rbac.yaml grants and nothing recorded has used."),
        UTC,
    ),
    body=later("kubectl_ctrl.cli.verbs.rbac.main:run"),
    completes=bundled.candidates,
    recalls="controllers",
)
