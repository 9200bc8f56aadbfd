"""`kubectl ctrl install`: its flags and its help. What it does is in `installing`, loaded when it does it."""

from __future__ import annotations

from kubectl_ctrl.cli.parsing.flags import ALLOW_CONTEXT, TEMPLATES
from kubectl_ctrl.cli.parsing.grammar import DURATION, Flag
from kubectl_ctrl.cli.parsing.verb import Verb, later
from kubectl_ctrl.loader import bundled

VERB = Verb(
    name="install",
    usage="install [CONTROLLER...] [flags]",
    summary="Put what controllers need into the cluster: CRDs and rights.",
    details=(
        "Each controller gets its CRDs, the namespace CONTROLLER-system with a\n"
        "ServiceAccount, and the roles of its rbac.yaml bound to that. All of it is\n"
        "applied by the server, and what is there already is not written again. Without\n"
        "a name: all bundled controllers."
    ),
    examples=(
        ("Install foo, and wait until its CRD can be used", "install foo"),
        ("Only the CRDs of all bundled controllers", "install --crds-only"),
        ("See what would change, as the server says", "install foo --dry-run=server"),
        ("As YAML, for another tool", "install foo --print | kubectl apply -f -"),
    ),
    flags=(
        ALLOW_CONTEXT,
        Flag("--crds-only", help="Only the CRDs."),
        Flag(
            "--dry-run",
            value="WHERE",
            default="none",
            choices=("none", "client", "server"),
            help="none, client or server: say what would be done. client compares here; server has the server check "
            "everything, and keep nothing.",
        ),
        Flag(
            "--force-conflicts",
            help="Take fields that others keep, and CRDs that are not ours and are different.",
        ),
        Flag(
            "-o",
            "--output",
            value="FORMAT",
            default="",
            choices=("name", "json", "yaml", *TEMPLATES),
            help="The objects as they are then, as a List, in a form of kubectl's: name, json, yaml, jsonpath=..., "
            "jsonpath-as-json=..., jsonpath-file=..., custom-columns=..., custom-columns-file=...; a line for each "
            "when not given.",
        ),
        Flag("--print", help="Print the objects as YAML for kubectl apply -f -; no cluster is needed."),
        Flag("--rbac-only", help="Everything but the CRDs."),
        Flag(
            "--wait",
            value="DURATION",
            type=DURATION,
            default="60s",
            help="How long to wait until the CRDs can be used; 0 does not wait. Code 124 when the time runs out.",
        ),
    ),
    body=later("kubectl_ctrl.cli.verbs.install.main:run"),
    completes=bundled.candidates,
)
