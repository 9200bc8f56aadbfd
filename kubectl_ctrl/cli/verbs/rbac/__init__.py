"""`kubectl ctrl rbac`: its flags and its help; `main` has the code, imported when it runs."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import LOOKING_BACK, UTC
from kubectl_ctrl.cli.parsing.grammar import Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="rbac",
    usage="rbac CONTROLLER [--from-trace|--missing|--unused] [flags]",
    details=(
        "Without a flag, it prints what the controller's rbac.yaml grants. --from-trace\n"
        "prints the minimal roles for the recorded calls: lists and watches of its\n"
        "caches, all calls of its reconciles, including dry runs, its events and its\n"
        "Lease.\n\n"
        "--missing prints the rights that were refused and are still missing, bound to\n"
        "the user or ServiceAccount that was refused; and the rights that the controller\n"
        "used as you, but that its rbac.yaml does not grant, bound to its own\n"
        "ServiceAccount. The output can be piped to kubectl apply; it only adds rights.\n"
        "--unused prints the rights in rbac.yaml that no recorded run needed. Check them\n"
        "before you remove them: a rare branch of the code may not have run yet.\n\n"
        "It reads the recording, never the cluster: all runs of the controller on the\n"
        "selected cluster, on this machine or from a file (--from)."
    ),
    examples=(
        ("Print the rights in foo's rbac.yaml", "rbac foo"),
        ("Write the minimal rbac.yaml for what foo did", "rbac foo --from-trace > rbac.yaml"),
        ("Grant the rights that were refused", "rbac memcached --missing -o yaml | kubectl apply -f -"),
        ("Print the rights that could be removed", "rbac ./mine.py --unused"),
    ),
    flags=(
        *LOOKING_BACK,
        Flag("--from-trace", help="Print the minimal roles for the recorded calls."),
        Flag("--missing", help="Print the rights that were refused, or used but not granted, with their bindings."),
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="",
            choices=("text", "json", "yaml"),
            help="Output format: yaml, json or text. Default: text for --unused, otherwise yaml.",
        ),
        Flag("--unused", help="Print the rights in rbac.yaml that no recorded run used."),
        UTC,
    ),
    body=later("kubectl_ctrl.cli.verbs.rbac.main:run"),
    completes=bundled.candidates,
    recalls="controllers",
)
